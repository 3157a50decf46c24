package replay

import (
	"errors"

	"diagnose/evidence"
	"diagnose/internal/ptrace"
)

// breakpoints is the placer.
type breakpoints struct {
	thread *thread
	pc     uint64
	left   uint64 // times that pc must still be reached
}

func newPlacer(*controller) placer { return &breakpoints{} }

func (b *breakpoints) arm(*thread, uint64) error {
	return errors.New("replay: signals that came between two events cannot be placed")
}

func (b *breakpoints) last(*thread) (move, error) { return move{}, nil }

func (b *breakpoints) trap(t *thread, regs *ptrace.Registers) (move, error) {
	if t != b.thread || regs.Rip != b.pc {
		return move{kind: moveForeign}, nil
	}
	if b.left--; b.left > 0 {
		return move{}, nil
	}
	return move{kind: moveArrived}, nil
}

func (b *breakpoints) breakAt(t *thread, pc evidence.Addr, count uint64) error {
	b.thread, b.pc, b.left = t, uint64(pc), count
	if pc == 0 {
		return ptrace.ClearBreakpoint(t.tid)
	}
	return ptrace.Breakpoint(t.tid, uint64(pc))
}
