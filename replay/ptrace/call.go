package ptrace

import (
	"fmt"
	"syscall"
)

// SystemCall makes a stopped thread make a system call, and returns the result,
// as ResultError reads it. The registers are as before when it returns. It waits
// for stops of that thread alone; a stop of another kind in between is an error.
func SystemCall(tid int, number uint64, args ...uint64) (result int64, err error) {
	saved, err := GetRegisters(tid)
	if err != nil {
		return 0, err
	}
	memory, err := OpenMemory(tid)
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	instruction := []byte{0x0f, 0x05}
	before := make([]byte, len(instruction))
	if _, err := memory.ReadAt(before, int64(saved.Rip)); err != nil {
		return 0, err
	}
	if _, err := memory.WriteAt(instruction, int64(saved.Rip)); err != nil {
		return 0, err
	}
	defer func() {
		if _, writeErr := memory.WriteAt(before, int64(saved.Rip)); err == nil {
			err = writeErr
		}
		if setErr := SetRegisters(tid, &saved); err == nil {
			err = setErr
		}
	}()
	call := saved
	PrepareCall(&call, number, args)
	call.Orig_rax = ^uint64(0)
	call.Eflags |= FlagResume // a debug register may have a breakpoint at the instruction
	after, err := stepWith(tid, &call)
	if err == nil && after.Rip == call.Rip {
		// The thread was in a system call, as at an exec, whose result is known only now. It
		// trapped when it left that call.
		saved.Rax = after.Rax
		after, err = stepWith(tid, &call)
	}
	if err == nil && after.Rip == call.Rip {
		err = fmt.Errorf("ptrace: thread %d does not leave %#x", tid, call.Rip)
	}
	return int64(after.Rax), err
}

// PrepareCall sets the registers for a system call, as syscall(2) lists them for x86-64.
func PrepareCall(regs *Registers, number uint64, args []uint64) {
	regs.Rax = number
	for i, slot := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9} {
		if i < len(args) {
			*slot = args[i]
		}
	}
}

// ResultError returns the syscall.Errno of a system call with this result, nil if the call
// succeeded.
func ResultError(result int64) error {
	const most = 4095 // MAX_ERRNO of linux/err.h
	if result >= 0 || result < -most {
		return nil
	}
	return syscall.Errno(-result)
}

// stepWith executes one instruction.
func stepWith(tid int, regs *Registers) (Registers, error) {
	if err := SetRegisters(tid, regs); err != nil {
		return Registers{}, err
	}
	stop, err := StepQuietly(tid)
	if err != nil {
		return Registers{}, err
	}
	if stop.Kind != SignalStop || stop.Signal != syscall.SIGTRAP {
		return Registers{}, fmt.Errorf("ptrace: thread %d came to %v in a system call made for us", tid, stop)
	}
	return GetRegisters(tid)
}
