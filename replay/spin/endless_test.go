package spin

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// stepLoop steps through one of the loops of testdata/schedule/loops.c. Then it calls then with
// the state of the program.
func stepLoop(t *testing.T, exe, name string, most int, then func(l *loop, endless bool, other *ptrace.Stop)) {
	t.Helper()
	err := ptrace.OnThread(func() error {
		cmd := exec.Command(exe, name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		pid := cmd.Process.Pid
		defer cmd.Wait()
		defer cmd.Process.Kill()
		for _, want := range []string{"its exec", "the trap before the loop"} {
			stop, err := ptrace.WaitFor(pid)
			if err != nil {
				return err
			}
			if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
				return fmt.Errorf("%v in place of %s", stop, want)
			}
			if want == "its exec" {
				err = ptrace.Cont(pid, 0)
			}
			if err != nil {
				return err
			}
		}
		memory, err := tracee.OpenMemory(pid)
		if err != nil {
			return err
		}
		defer memory.Close()
		p := &tracee.Process{PID: pid, Memory: memory, Library: []tracee.Span{}}
		p.MovedFrom = func(uint64) *x86.Inst { return nil }
		l := &loop{p: p, t: &tracee.Thread{TID: pid, Stopped: true}, instructions: map[uint64]*x86.Inst{}}
		endless, other, err := l.turns(most)
		if err == nil {
			then(l, endless, other)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func buildLoops(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "loops")
	if out, err := exec.Command("gcc", "-O1", "-msse4.1", "-o", exe, "../../internal/testdata/schedule/loops.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return exe
}

// A loop that the thread cannot leave by itself is recognized after a few iterations.
func TestLoopWithoutEnd(t *testing.T) {
	exe := buildLoops(t)
	for _, name := range []string{"load", "exchange", "compare_exchange", "both", "calls", "backs_off"} {
		stepLoop(t, exe, name, 2000, func(_ *loop, endless bool, other *ptrace.Stop) {
			if !endless || other != nil {
				t.Errorf("%s: %v, %v", name, endless, other)
			}
		})
	}
	stepLoop(t, exe, "backs_off", 100, func(_ *loop, endless bool, _ *ptrace.Stop) {
		if endless {
			t.Error("an endless loop was reported before it had returned")
		}
	})
}

// A loop that ends is not reported, nor one whose end depends on more than its own state. The
// program continues to its end as it does without stepping.
func TestLoopWithEnd(t *testing.T) {
	exe := buildLoops(t)
	for _, name := range []string{"counter", "few", "memory", "vectors", "string", "clock", "kernel", "flags"} {
		stepLoop(t, exe, name, 2000, func(l *loop, endless bool, other *ptrace.Stop) {
			if endless || other != nil {
				t.Errorf("%s: %v, %v", name, endless, other)
				return
			}
			if err := ptrace.Cont(l.t.TID, 0); err != nil {
				t.Error(err)
				return
			}
			if stop, err := ptrace.WaitFor(l.t.TID); err != nil || stop.Kind != ptrace.Ended || stop.Status.ExitStatus() != 7 {
				t.Errorf("%s: it came to %v, %v", name, stop, err)
			}
		})
	}
	stepLoop(t, exe, "with_others", 2000, func(_ *loop, endless bool, other *ptrace.Stop) {
		if endless || other != nil {
			t.Errorf("memory that another process may write: %v, %v", endless, other)
		}
	})
	stepLoop(t, exe, "fails", 2000, func(_ *loop, endless bool, other *ptrace.Stop) {
		if endless || other == nil || other.Signal != unix.SIGSEGV {
			t.Errorf("an instruction that fails: %v, %v", endless, other)
		}
	})
}
