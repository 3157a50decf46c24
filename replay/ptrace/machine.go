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
	return onUnstarted(func(tid int) error {
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

// ErrCounterDoesNotTrap says that PR_SET_TSC (prctl(2)) has no effect on this machine.
var ErrCounterDoesNotTrap = errors.New("reads of the time-stamp counter cannot be made to trap on this machine")

// CounterTraps returns nil if a process can be made to trap where it reads the time-stamp counter,
// and ErrCounterDoesNotTrap or the reason why this cannot be found out. It tries that once.
var CounterTraps = sync.OnceValue(func() error {
	return onUnstarted(func(tid int) error {
		if _, err := SystemCall(tid, unix.SYS_PRCTL, unix.PR_SET_TSC, unix.PR_TSC_SIGSEGV); err != nil {
			return err
		}
		regs, err := GetRegisters(tid)
		if err != nil {
			return err
		}
		memory, err := OpenMemory(tid)
		if err != nil {
			return err
		}
		defer memory.Close()
		if _, err := memory.WriteAt([]byte{0x0f, 0x31}, int64(regs.Rip)); err != nil { // rdtsc
			return err
		}
		stop, err := StepQuietly(tid)
		if err != nil {
			return err
		}
		if stop.Kind != SignalStop || stop.Signal != unix.SIGSEGV {
			return ErrCounterDoesNotTrap
		}
		return nil
	})
})

// onUnstarted calls do for the thread of a process that has not executed an instruction. The process
// is ended afterwards.
func onUnstarted(do func(tid int) error) error {
	return OnThread(func() error {
		cmd := exec.Command("/proc/self/exe")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("ptrace: a process to try this machine with: %w", err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		if _, err := WaitFor(cmd.Process.Pid); err != nil {
			return err
		}
		return do(cmd.Process.Pid)
	})
}
