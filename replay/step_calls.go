package replay

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
)

// awaitCalls runs the thread at full speed to the next call of a function of Calls.
func (c *controller) awaitCalls(t *thread) error {
	calls := c.stepper.Calls
	var entries []uint64
	for _, f := range calls[:min(len(calls), c.placer.room(t))] {
		entries = append(entries, uint64(f))
	}
	return c.runSteps(t, entries...)
}

// cameToCall handles a thread at the start of one of the functions, or at its return address.
func (c *controller) cameToCall(t *thread, regs *ptrace.Registers) error {
	s := t.steps
	ordinal, called := s.ordinal, s.called
	s.called = 0
	if err := c.stepEvent(t); err != nil {
		return err
	}
	if t.steps == nil {
		return c.placer.resumeAt(t)
	}
	if slices.Contains(c.stepper.Calls, evidence.Addr(regs.Rip)) {
		var word [8]byte
		if _, err := c.memory.ReadAt(word[:], int64(regs.Rsp)); err != nil {
			return err
		}
		s.called, s.first = regs.Rip, regs.Rdi
		return c.runSteps(t, binary.LittleEndian.Uint64(word[:]))
	}
	// The return is an arrival at its target, even after an event.
	s.counts[regs.Rip]++
	if called != 0 && s.ordinal == ordinal {
		c.stepper.On(&Stepped{Thread: t.index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.counts[regs.Rip], Behind: s.behind, Called: evidence.Addr(called), First: s.first})
	}
	return c.awaitCalls(t)
}
