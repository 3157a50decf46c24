package step

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// awaitCalls runs the thread at full speed to the next call of a function of Calls.
func (st *Stepper) awaitCalls(t *tracee.Thread) error {
	calls := st.Calls
	var entries []uint64
	for _, f := range calls[:min(len(calls), st.breaks.FreeRegisters(t))] {
		entries = append(entries, uint64(f))
	}
	return st.runUpTo(t, entries...)
}

// cameToCall handles a thread at the start of one of the functions, or at its return address.
func (st *Stepper) cameToCall(t *tracee.Thread, regs *ptrace.Registers) error {
	s := st.threads[t]
	ordinal, called := s.ordinal, s.called
	s.called = 0
	if err := st.noteEvent(t); err != nil {
		return err
	}
	if st.threads[t] == nil {
		return st.breaks.ResumeAt(t)
	}
	if slices.Contains(st.Calls, evidence.Addr(regs.Rip)) {
		var word [8]byte
		if _, err := st.process.Memory.ReadAt(word[:], int64(regs.Rsp)); err != nil {
			return err
		}
		s.called, s.first = regs.Rip, regs.Rdi
		return st.runUpTo(t, binary.LittleEndian.Uint64(word[:]))
	}
	// The return is an arrival at its target, even after an event.
	s.counts[regs.Rip]++
	if called != 0 && s.ordinal == ordinal {
		st.On(&Stepped{Thread: t.Index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.counts[regs.Rip], Behind: s.behind, Called: evidence.Addr(called), First: s.first})
	}
	return st.awaitCalls(t)
}
