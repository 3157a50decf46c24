package replay

import (
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// The codes of SIGTRAP (include/uapi/asm-generic/siginfo.h).
const (
	trapTrace      = 2 // TRAP_TRACE
	trapBreakpoint = 1 // TRAP_BRKPT
	trapHardware   = 4 // TRAP_HWBKPT
)

// signalStop is a signal that is about to be delivered.
type signalStop struct {
	signal syscall.Signal
	code   int32
	info   ptrace.Siginfo
	regs   ptrace.Registers
}

func siCode(info *ptrace.Siginfo) int32 {
	return int32(uint32(info[8]) | uint32(info[9])<<8 | uint32(info[10])<<16 | uint32(info[11])<<24)
}

// faults are the signals that instructions raise.
var faults = map[syscall.Signal]bool{unix.SIGSEGV: true, unix.SIGBUS: true, unix.SIGFPE: true, unix.SIGILL: true,
	unix.SIGTRAP: true, unix.SIGSYS: true}

// IsFault reports whether a signal is one that instructions raise.
func IsFault(s syscall.Signal) bool { return faults[s] }

const siKernel = 0x80 // SI_KERNEL: int3
