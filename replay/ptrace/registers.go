package ptrace

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Registers are the general registers, struct user_regs_struct of sys/user.h.
type Registers = unix.PtraceRegs

// Bits of Eflags: Intel's manual, volume 1, section 3.4.3.
const (
	FlagTrap   = 1 << 8  // TF: the thread stops after each instruction
	FlagResume = 1 << 16 // RF: no debug register stops the thread at its next instruction
)

// GetRegisters reads the registers of a stopped thread.
func GetRegisters(tid int) (Registers, error) {
	var regs Registers
	err := requestMemory("GETREGS", unix.PTRACE_GETREGS, tid, 0, unsafe.Pointer(&regs))
	return regs, err
}

// SetRegisters writes the registers of a stopped thread. A thread that stopped in a system call
// repeats it if Orig_rax is the call's number: set it to ^0 after a change of Rip.
func SetRegisters(tid int, regs *Registers) error {
	return requestMemory("SETREGS", unix.PTRACE_SETREGS, tid, 0, unsafe.Pointer(regs))
}

// SetGSBase sets the base of %gs, an address in the process.
func SetGSBase(tid int, base uint64) error {
	const gsBase = uintptr(unsafe.Offsetof(Registers{}.Gs_base))
	return request("POKEUSER", unix.PTRACE_POKEUSR, tid, gsBase, uintptr(base))
}

// Register sets for GetRegset, NT_... of linux/elf.h.
const (
	RegsetGeneral = 1
	RegsetFP      = 2
	RegsetXState  = 0x202
)

// FXSaveBytes is the size of the area that RegsetFP is, and that FXSAVE stores (Intel SDM volume 1, 10.5.1).
const FXSaveBytes = 512

// maxRegset is larger than the XSAVE area of any processor.
const maxRegset = 64 << 10

// GetRegset reads a register set in the format of a core's notes.
func GetRegset(tid, set int) ([]byte, error) {
	room := regsets.Get().(*[maxRegset]byte)
	defer regsets.Put(room)
	n, err := ReadRegset(tid, set, room[:])
	return slices.Clone(room[:n]), err
}

var regsets = sync.Pool{New: func() any { return new([maxRegset]byte) }}

// ReadRegset reads as much of a register set as there is room for, and returns its length.
func ReadRegset(tid, set int, p []byte) (int, error) {
	iov := unix.Iovec{Base: &p[0], Len: uint64(len(p))}
	if err := requestMemory("GETREGSET", unix.PTRACE_GETREGSET, tid, uintptr(set), unsafe.Pointer(&iov)); err != nil {
		return 0, err
	}
	return int(iov.Len), nil
}

// SetRegset replaces a register set.
func SetRegset(tid, set int, p []byte) error {
	if len(p) == 0 {
		return fmt.Errorf("ptrace SETREGSET of thread %d: no bytes", tid)
	}
	iov := unix.Iovec{Base: &p[0], Len: uint64(len(p))}
	return requestMemory("SETREGSET", unix.PTRACE_SETREGSET, tid, uintptr(set), unsafe.Pointer(&iov))
}

// debugRegisters is offsetof(struct user, u_debugreg).
const debugRegisters = 848

// GetDebug reads a debug register, 0 to 3, 6 or 7.
func GetDebug(tid, number int) (uint64, error) {
	var value uint64 // the system call, unlike the function of libc, stores it
	err := requestMemory("PEEKUSER", unix.PTRACE_PEEKUSR, tid, debugRegisters+8*uintptr(number), unsafe.Pointer(&value))
	return value, err
}

// SetDebug writes a debug register. A new thread's DR7 reads back as set and
// is not armed: write 0 to it, then the addresses, then DR7.
func SetDebug(tid, number int, value uint64) error {
	return request("POKEUSER", unix.PTRACE_POKEUSR, tid, debugRegisters+8*uintptr(number), uintptr(value))
}

// Breakpoint arms debug register 0 of a stopped thread as a breakpoint for the
// execution of the instruction at pc, and ClearBreakpoint disarms it. It traps
// before the instruction; set FlagResume in Eflags to continue past it.
func Breakpoint(tid int, pc uint64) error {
	const local0 = 1 // execution is kind 0, length 0
	if err := SetDebug(tid, 7, 0); err != nil {
		return err
	}
	if err := SetDebug(tid, 0, pc); err != nil {
		return err
	}
	return SetDebug(tid, 7, local0)
}

// ClearBreakpoint disarms all debug registers of a stopped thread.
func ClearBreakpoint(tid int) error {
	if err := SetDebug(tid, 7, 0); err != nil {
		return err
	}
	return SetDebug(tid, 6, 0)
}
