package breakpoint

import (
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// point is an instruction at which a thread is preempted, and the number of arrivals still to
// come; pc 0: there is none.
type point struct{ pc, left uint64 }

// armPoint makes trap stop the thread at a preemption's instruction.
func (b *Breakpoints) armPoint(t *tracee.Thread, e *eventlog.Event) error {
	if len(e.Args) < 2 || e.Args[0] != agent.PointPC || e.Object == 0 || e.Args[1] == 0 {
		return fmt.Errorf("replay: a preemption of class %v is looked for", e.Args)
	}
	if err := b.demote(t, e.Object); err != nil {
		return err
	}
	x := b.of(t)
	x.point = point{e.Object, e.Args[1]}
	return b.set(t.TID)
}

// reachedPoint handles a thread at the instruction.
func (b *Breakpoints) reachedPoint(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	x.point = point{}
	if err := b.set(t.TID); err != nil {
		return Move{}, err
	}
	// A Moment at the same instruction is after the preemption.
	if x.moment == regs.Rip || slices.Contains(b.everywhere, regs.Rip) {
		regs.Eflags &^= ptrace.FlagResume
	}
	return Move{Kind: Preempts}, nil
}

// ResumeAt also stops the thread at the pcs, and no longer at those of earlier calls.
func (b *Breakpoints) ResumeAt(t *tracee.Thread, pcs ...uint64) error {
	x := b.of(t)
	for _, pc := range pcs {
		if err := b.demote(t, pc); err != nil {
			return err
		}
	}
	x.resume = pcs
	return b.set(t.TID)
}

// FreeRegisters returns how many pcs that can be.
func (b *Breakpoints) FreeRegisters(t *tracee.Thread) int {
	x, left := b.of(t), tracee.DebugRegisters
	for _, taken := range []bool{x.moment != 0, x.point.pc != 0, x.place != nil} {
		if taken {
			left--
		}
	}
	return left
}
