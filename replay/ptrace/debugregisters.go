package ptrace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoDebugRegisters is the name of an environment variable. If it is set, DebugRegistersFire says
// that they do not: for a machine that loses some of their traps, and for tests.
const NoDebugRegisters = "DIAGNOSE_NO_DEBUG_REGISTERS"

// ErrNoDebugRegisters says that this machine's debug registers do not stop a thread. Some virtual
// machines accept values for them, report these back, and never trap.
var ErrNoDebugRegisters = errors.New("the debug registers of this machine do not stop a thread")

// DebugRegistersFire returns nil if debug registers stop threads on this machine, and
// ErrNoDebugRegisters or the reason why this cannot be found out. It tries that once, by a
// breakpoint at the first instruction of a process that is ended before it runs.
var DebugRegistersFire = sync.OnceValue(func() error {
	if os.Getenv(NoDebugRegisters) != "" {
		return ErrNoDebugRegisters
	}
	// A busy machine may lose a trap.
	const tries = 3
	var err error
	for range tries {
		if err = tryDebugRegisters(); err == nil {
			return nil
		}
	}
	return err
})

func tryDebugRegisters() error {
	return OnThread(func() error {
		cmd := exec.Command("/proc/self/exe")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("ptrace: debug registers: %w", err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		tid := cmd.Process.Pid
		if _, err := WaitFor(tid); err != nil {
			return err
		}
		before, err := GetRegisters(tid)
		if err != nil {
			return err
		}
		if err := Breakpoint(tid, before.Rip); err != nil {
			return err
		}
		// A breakpoint traps before the step is made.
		stop, err := StepQuietly(tid)
		if err != nil {
			return err
		}
		after, err := GetRegisters(tid)
		switch {
		case err != nil:
			return err
		case stop.Kind != SignalStop || stop.Signal != unix.SIGTRAP || after.Rip != before.Rip:
			return ErrNoDebugRegisters
		}
		return nil
	})
}
