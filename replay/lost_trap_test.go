package replay_test

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// skipWhereTrapsAreLost skips a test that needs every trap of a debug register. A busy virtual
// machine loses some, and the status of others (tracee.IsStepTrap), which single steps show.
func skipWhereTrapsAreLost(t *testing.T) {
	t.Helper()
	const steps = 100_000
	exe := crashtest.Compile(t, crashtest.Program{Source: "turns.c", Text: `int main(void) { __asm__("int3"); for (;;) __asm__(""); }`})
	lost := 0
	err := ptrace.OnThread(func() error {
		cmd := exec.Command(exe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		pid := cmd.Process.Pid
		resume := ptrace.Cont // to the int3
		for n := range steps {
			stop, err := ptrace.WaitFor(pid)
			if err != nil {
				return err
			}
			if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
				return fmt.Errorf("%v in place of a trap", stop)
			}
			if n == 1 { // after the stops for its exec and its int3
				resume = ptrace.Step
			}
			if n > 1 {
				info, err := ptrace.GetSiginfo(pid)
				if err != nil {
					return err
				}
				if info.Code() == tracee.TrapBreakpoint {
					lost++
				}
			}
			if err := resume(pid, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lost > 0 {
		t.Skip(&crashtest.UnsupportedError{What: fmt.Sprintf("this machine lost the status of %d of %d traps", lost, steps)})
	}
}
