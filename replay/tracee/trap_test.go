package tracee_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// turns calls f 20 times, which clears memory by an instruction that repeats. It has a copy of that,
// and room for a jump to the copy. Its int3 tells where these are.
const turns = `
static char room[100000];
extern char clears[], after[], copy[];

__attribute__((noinline)) static void f(void)
{
	void *to = room;
	long n = sizeof(room);

	__asm__ volatile("clears: rep stosb\nnop\nnop\nnop\nafter:" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

__asm__("copy: rep stosb\njmp after");

int main(void)
{
	__asm__ volatile("int3" : : "D"(f), "S"(clears), "d"(after), "c"(copy));
	for (int i = 0; i < 20; i++)
		f();
	return 7;
}`

// TestTraps: a trap stops the thread before the instruction, once each time, and the text that is
// read is the program's.
func TestTraps(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		t.Run(fmt.Sprintf("jumps=%v", jumps), func(t *testing.T) { testTraps(t, jumps) })
	}
}

// testTraps: jumps: the instruction that repeats is replaced by a jump to its copy.
func testTraps(t *testing.T, jumps bool) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "turns.c", Text: turns})
	arrivals := map[uint64]int{}
	err := ptrace.OnThread(func() error {
		cmd := exec.Command(exe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		pid := cmd.Process.Pid
		if _, err := ptrace.WaitFor(pid); err != nil {
			return err
		}
		if err := ptrace.Cont(pid, 0); err != nil {
			return err
		}
		if _, err := ptrace.WaitFor(pid); err != nil { // its int3
			return err
		}
		return followTraps(t, pid, jumps, arrivals)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(arrivals) != 3 {
		t.Errorf("arrivals at %v, want three addresses", arrivals)
	}
	for pc, n := range arrivals {
		if n != 20 {
			t.Errorf("%d arrivals at %#x, want 20", n, pc)
		}
	}
}

// followTraps sets breakpoints at the addresses that a program tells in its registers, and counts
// the arrivals until it ends.
func followTraps(t *testing.T, pid int, jumps bool, arrivals map[uint64]int) error {
	memory, err := tracee.OpenMemory(pid)
	if err != nil {
		return err
	}
	defer memory.Close()
	x := &tracee.Thread{TID: pid}
	p := &tracee.Process{PID: pid, Memory: memory, Threads: map[int]*tracee.Thread{pid: x}, Started: true}
	p.UseTraps()
	regs, err := ptrace.GetRegisters(pid)
	if err != nil {
		return err
	}
	own, has := make([]byte, 4), make([]byte, 4)
	if _, err := memory.ReadAt(own, int64(regs.Rdi)); err != nil {
		return err
	}
	if jumps {
		const jump = 5
		to := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(regs.Rcx-regs.Rsi-jump))
		if err := memory.Replace(regs.Rsi, to); err != nil {
			return err
		}
	}
	if err := p.SetBreakpoints(pid, regs.Rdi, regs.Rsi, regs.Rdx); err != nil {
		return err
	}
	if _, err := memory.ReadAt(has, int64(regs.Rdi)); err != nil || !bytes.Equal(own, has) {
		t.Errorf("with a trap the text is % x (%v), not % x", has, err, own)
	}
	for continues := false; ; {
		if !continues {
			if err := p.Resume(x, 0, false); err != nil {
				return err
			}
		}
		stop, queued := p.Queued()
		var err error
		if !queued {
			stop, err = ptrace.WaitFor(pid)
		}
		if err != nil {
			return err
		}
		if stop.Kind == ptrace.Ended {
			if stop.Status.ExitStatus() != 7 {
				t.Errorf("the program came to %v", stop)
			}
			return nil
		}
		if continues, err = p.Traps.Passed(x, &stop); err != nil {
			return err
		} else if continues {
			continue
		}
		if err := arrive(p, x, &stop, arrivals); err != nil {
			return err
		}
	}
}

func arrive(p *tracee.Process, x *tracee.Thread, stop *ptrace.Stop, arrivals map[uint64]int) error {
	info, err := ptrace.GetSiginfo(x.TID)
	if err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(x.TID)
	if err != nil {
		return err
	}
	s := tracee.SignalStop{Signal: stop.Signal, Code: info.Code(), Info: info, Regs: regs}
	others, err := p.Traps.AtTrap(x, &s)
	if err != nil {
		return err
	}
	if others || s.Code != tracee.TrapHardware {
		return fmt.Errorf("%v with code %d at %#x is no stop at a breakpoint", stop, s.Code, s.Regs.Rip)
	}
	arrivals[s.Regs.Rip]++
	return nil
}
