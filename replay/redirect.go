package replay

import (
	"bytes"

	"golang.org/x/sys/unix"

	"diagnose/internal/ptrace"
)

var (
	codeUD2    = []byte{0x0f, 0x0b}
	codeRDTSC  = []byte{0x0f, 0x31}
	codeRDTSCP = []byte{0x0f, 0x01, 0xf9}
)

// redirect sends a thread into the engine that stands at an instruction which
// traps for it: ud2 in the place of a system call, or one that reads the
// time-stamp counter (agent/src/entry.S says what the engine expects).
func (c *controller) redirect(t *thread, s *signalStop) (bool, error) {
	if c.control == 0 || s.signal != unix.SIGILL && s.signal != unix.SIGSEGV {
		return false, nil
	}
	var code [3]byte
	if _, err := c.memory.ReadAt(code[:], int64(s.regs.Rip)); err != nil {
		return false, nil // a jump to nowhere: the program's own fault
	}
	control, err := c.readControl()
	if err != nil {
		return false, err
	}
	regs := s.regs
	switch {
	case s.signal == unix.SIGILL && bytes.HasPrefix(code[:], codeUD2) && c.stage().trapsAt(s.regs.Rip):
		regs.Rcx, regs.Rip = s.regs.Rip, control.InsnPC
	case s.signal == unix.SIGSEGV && s.code == siKernel && (bytes.HasPrefix(code[:], codeRDTSC) || bytes.Equal(code[:], codeRDTSCP)):
		const below = 136
		if err := c.memory.SetWord(s.regs.Rsp-below, s.regs.Rip); err != nil {
			return false, err
		}
		regs.Rsp, regs.Rip = s.regs.Rsp-below, control.TSCPC
	default:
		return false, nil
	}
	regs.Orig_rax = ^uint64(0)
	if err := ptrace.SetRegisters(t.tid, &regs); err != nil {
		return false, err
	}
	return true, c.cont(t, 0)
}
