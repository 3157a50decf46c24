package tracee

import (
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// The codes of SIGTRAP (include/uapi/asm-generic/siginfo.h).
const (
	TrapTrace      = 2 // TRAP_TRACE
	TrapBreakpoint = 1 // TRAP_BRKPT
	TrapHardware   = 4 // TRAP_HWBKPT
	// TrapHandler is of the stop at a handler's first instruction, of a thread that is stepped (kernel/signal.c,
	// signal_setup_done; kernel/ptrace.c, ptrace_notify).
	TrapHandler = int32(unix.SIGTRAP)
)

// IsStepTrap reports whether a SIGTRAP with this code may be the end of a single step. The kernel
// gives TrapTrace, or TrapBreakpoint after a system call (arch/x86/kernel/step.c). It also gives
// TrapBreakpoint if the debug status register is empty (arch/x86/kernel/traps.c,
// exc_debug_user): a busy virtual machine can lose what the processor stored there, once in
// some 20,000 steps. The instruction has been executed all the same.
func IsStepTrap(code int32) bool { return code == TrapTrace || code == TrapBreakpoint }

// EndsStep reports whether a stop of a thread is the end of its single step, and not another's.
func EndsStep(stop *ptrace.Stop) (bool, error) {
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return false, nil
	}
	info, err := ptrace.GetSiginfo(stop.TID)
	return err == nil && IsStepTrap(info.Code()), err
}

// SignalStop is a signal that is about to be delivered.
type SignalStop struct {
	Signal syscall.Signal
	Code   int32
	Info   ptrace.Siginfo
	Regs   ptrace.Registers
}

// faults are the signals that instructions raise.
var faults = map[syscall.Signal]bool{unix.SIGSEGV: true, unix.SIGBUS: true, unix.SIGFPE: true, unix.SIGILL: true,
	unix.SIGTRAP: true, unix.SIGSYS: true}

// IsFault reports whether a signal is one that instructions raise.
func IsFault(s syscall.Signal) bool { return faults[s] }
