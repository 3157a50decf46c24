package launch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// launchOnce starts a program that prints its mappings and random bytes.
func launchOnce(t *testing.T, l Launch) (string, *ptrace.Stop) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	l.Files = []uintptr{null.Fd(), out.Fd(), out.Fd()}
	var last ptrace.Stop
	err = ptrace.OnThread(func() error {
		pid, err := l.Start()
		if err != nil {
			return err
		}
		for {
			if err := ptrace.Cont(pid, 0); err != nil {
				return err
			}
			if last, err = ptrace.WaitFor(pid); err != nil {
				return err
			}
			if last.Kind == ptrace.Ended {
				return nil
			}
			if last.Kind != ptrace.EventStop {
				return fmt.Errorf("stopped by %v", last)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), &last
}

func TestLaunchTwiceIsTheSame(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip(err)
	}
	l := Launch{Path: cat, Args: []string{"cat", "/proc/self/maps", "/proc/self/auxv", "/proc/self/wchan"}, Environ: os.Environ(),
		Random: [16]byte{1, 2, 3}, Options: ptrace.ExitKill | ptrace.TraceExec}
	first, end := launchOnce(t, l)
	if end.Status.ExitStatus() != 0 {
		t.Fatalf("ended by %v: %s", end, first)
	}
	second, _ := launchOnce(t, l)
	if first != second || !strings.Contains(first, "[stack]") {
		t.Errorf("two starts differ:\n%s\n%s", first, second)
	}
	native, err := exec.Command("cat", "/proc/self/maps").Output()
	if err != nil || bytes.HasPrefix([]byte(first), native) {
		t.Errorf("no randomisation here, the test shows nothing (%v)", err)
	}
}

func TestLaunchNormalises(t *testing.T) {
	l := Launch{Path: "/proc/self/exe", Args: []string{"true"}, Environ: nil, Random: [16]byte{7: 0xab, 15: 0xcd}, Options: ptrace.ExitKill}
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	defer null.Close()
	l.Files = []uintptr{null.Fd(), null.Fd(), null.Fd()}
	err := ptrace.OnThread(func() error {
		pid, err := l.Start()
		if err != nil {
			return err
		}
		defer ptrace.WaitFor(pid)
		defer unix.Kill(pid, unix.SIGKILL)
		memory, err := ptrace.OpenMemory(pid)
		if err != nil {
			return err
		}
		defer memory.Close()
		at, err := auxiliary(pid, memory)
		if err != nil {
			return err
		}
		found := false
		for ; ; at += 16 {
			kind, err := memory.Word(at)
			if err != nil || kind == AuxNull {
				break
			}
			value, _ := memory.Word(at + 8)
			if kind == auxSystemInfo {
				t.Error("the vDSO is not hidden")
			}
			if kind == auxRandom {
				var got [16]byte
				memory.ReadAt(got[:], int64(value))
				found = got == l.Random
			}
		}
		if !found {
			t.Error("the random bytes are not the given ones")
		}
		got, err := ptrace.SystemCall(pid, unix.SYS_GETPID)
		if err != nil || got != int64(pid) {
			t.Errorf("getpid made in the process: %d, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A tracer may end after it has detached from the process and before it has seized it.
func TestLaunchedEndsWithItsTracer(t *testing.T) {
	l := Launch{Path: "/bin/true", Args: []string{"true"}, Files: []uintptr{0, 1, 2}, Options: ptrace.ExitKill}
	var pid int
	err := ptrace.OnThread(func() (err error) {
		if pid, err = l.fork(); err != nil {
			return err
		}
		if err := expect(pid, ptrace.SignalStop, unix.SIGTRAP, ptrace.WaitFor); err != nil {
			return err
		}
		if err := ptrace.Detach(pid, unix.SIGSTOP); err != nil {
			return err
		}
		return expect(pid, ptrace.JobStop, unix.SIGSTOP, ptrace.WaitJob)
	})
	if err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil {
			t.Fatal(err)
		} else if got == pid {
			break
		}
		if time.Now().After(end) {
			unix.Kill(pid, unix.SIGKILL)
			t.Fatal("it is still there, stopped")
		}
	}
	if !status.Signaled() || status.Signal() != unix.SIGKILL {
		t.Errorf("it ended by %#x, want SIGKILL", status)
	}
}

func TestLaunchOfNothing(t *testing.T) {
	err := ptrace.OnThread(func() error {
		_, err := (&Launch{Path: "/nonexistent", Args: []string{"x"}}).Start()
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}

// A start that fails ends the process that it has made, and no other process. Here the kernel
// does not know the ptrace options.
func TestLaunchThatFailsEndsItsProcessAlone(t *testing.T) {
	const inside = "DIAGNOSE_TEST_LAUNCH_FAILS"
	if os.Getenv(inside) != "" {
		err := ptrace.OnThread(func() error {
			_, err := (&Launch{Path: "/bin/true", Args: []string{"true"}, Files: []uintptr{0, 1, 2}, Options: 1 << 30}).Start()
			return err
		})
		children, readErr := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
		fmt.Printf("start: %v; children: %q, %v\n", err, children, readErr)
		return
	}
	// In its own process group, since kill(2) might kill the group.
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "start: record: the program cannot be traced: ") || !strings.Contains(string(out), `children: "", <nil>`) {
		t.Errorf("%v: %s", err, out)
	}
}
