package sites

import (
	"bytes"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

var (
	rdtsc  = []byte{0x0f, 0x31}
	rdtscp = []byte{0x0f, 0x01, 0xf9}
	ud2    = []byte{0x0f, 0x0b}
)

const redZone = 128

// Redirect sends a thread to the engine if it was stopped by a fault at an instruction that the
// engine executes in its place: a read of the time-stamp counter, which traps, or a system call
// that was replaced by ud2. agent/src/engine/entry.S defines the state that the engine expects.
// Redirect reports whether the fault was one of these; then the signal must not be delivered.
// It changes regs and the thread's registers.
func Redirect(tid int, s syscall.Signal, regs *ptrace.Registers, c *agent.RawControl, isSite func(pc uint64) bool) (bool, error) {
	memory, err := ptrace.OpenMemory(tid)
	if err != nil {
		return false, err
	}
	defer memory.Close()
	return RedirectIn(memory, tid, s, regs, c, isSite)
}

// RedirectIn is Redirect with the process's memory. Some programs read the counter 100,000 times
// at their start, and each read calls it.
func RedirectIn(memory *ptrace.Memory, tid int, s syscall.Signal, regs *ptrace.Registers, c *agent.RawControl, isSite func(pc uint64) bool) (bool, error) {
	if s != unix.SIGSEGV && s != unix.SIGILL || regs.Rip >= c.TextLow && regs.Rip < c.TextHigh {
		return false, nil
	}
	var code [3]byte
	if _, err := memory.ReadAt(code[:], int64(regs.Rip)); err != nil {
		// The pc is not in code, or the third byte is on an unmapped page.
		if _, err := memory.ReadAt(code[:2], int64(regs.Rip)); err != nil {
			return false, nil
		}
		code[2] = 0
	}
	switch {
	case s == unix.SIGSEGV && c.TSCPC != 0 && (bytes.HasPrefix(code[:], rdtsc) || bytes.Equal(code[:], rdtscp)):
		sp := regs.Rsp - redZone - 8
		if err := memory.SetWord(sp, regs.Rip); err != nil {
			return false, nil // no stack: the fault is the program's own
		}
		regs.Rsp, regs.Rip = sp, c.TSCPC
	case s == unix.SIGILL && c.InsnPC != 0 && bytes.HasPrefix(code[:], ud2) && isSite(regs.Rip):
		regs.Rcx, regs.Rip = regs.Rip, c.InsnPC
	default:
		return false, nil
	}
	regs.Orig_rax = ^uint64(0)
	return true, ptrace.SetRegisters(tid, regs)
}
