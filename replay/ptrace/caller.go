package ptrace

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Caller makes system calls in a stopped thread by an instruction syscall that the process has. In contrast to SystemCall it
// writes nothing to the process and does not restore the thread's registers.
type Caller struct {
	tid  int
	regs Registers
}

// NewCaller returns the Caller of a stopped thread. instruction is the address of a syscall with another instruction after it.
func NewCaller(tid int, instruction uint64) (*Caller, error) {
	regs, err := GetRegisters(tid)
	// With a stack pointer in a stack for signals, that one could not be replaced (sigaltstack(2)).
	regs.Rip, regs.Rsp, regs.Orig_rax = instruction, instruction, ^uint64(0)
	return &Caller{tid, regs}, err
}

// Call makes a system call. It waits for stops of that thread alone.
func (c *Caller) Call(number uint64, args ...uint64) (uint64, error) {
	call := c.regs
	PrepareCall(&call, number, args)
	after, err := stepWith(c.tid, &call)
	if err == nil && after.Rip == call.Rip {
		after, err = stepWith(c.tid, &call) // it trapped where it left the system call in which it had stopped
	}
	switch failure := ResultError(int64(after.Rax)); {
	case err != nil:
		return 0, err
	case after.Rip == call.Rip:
		return 0, fmt.Errorf("ptrace: thread %d does not leave %#x", c.tid, call.Rip)
	case failure != nil:
		return 0, fmt.Errorf("ptrace: system call %d in thread %d: %w", number, c.tid, failure)
	}
	return after.Rax, nil
}

// Leave sets the registers of a thread with which it runs from an address on, and detaches from it.
func (c *Caller) Leave(pc uint64) error {
	regs := c.regs
	regs.Rip = pc
	if err := SetRegisters(c.tid, &regs); err != nil {
		return err
	}
	return Detach(c.tid, 0)
}

// RobustList returns the list of robust mutexes that the kernel knows of a thread: get_robust_list(2).
func RobustList(tid int) (head, length uint64, err error) {
	_, _, errno := unix.RawSyscall(unix.SYS_GET_ROBUST_LIST, uintptr(tid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)))
	if errno != 0 {
		return 0, 0, fmt.Errorf("ptrace: robust list of thread %d: %w", tid, errno)
	}
	return head, length, nil
}
