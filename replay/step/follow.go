package step

import (
	"math"

	"diagnose/replay/tracee"
)

// Follow starts stepping a stopped thread from where it is, for a debugger. Each is called for the next
// instruction of the program that the thread arrives at: after the one at which it is, or where it leaves the
// library. There that is the instruction after the call, or handler, if it is not 0: the first instruction of the handler
// of a signal that the thread gets.
func (st *Stepper) Follow(t *tracee.Thread, handler uint64) error {
	if t.Final != nil {
		return nil // it stays where it is
	}
	regs, err := st.process.ProgramRegisters(t)
	if err != nil {
		return err
	}
	r, err := st.process.ReadThread(t.Index)
	if err != nil {
		return err
	}
	s := &state{to: math.MaxUint64, low: tracee.StackLow(r), top: r.StackHigh, ordinal: math.MaxUint64}
	st.threads[t] = s
	switch {
	case r.Inside != 0 && handler != 0:
		return st.runUpTo(t, handler)
	case r.Inside != 0:
		return st.runUpTo(t, regs.Rip)
	}
	if err := st.noteEvent(t); err != nil {
		return err
	}
	inside, err := st.process.InLibrary(regs.Rip)
	if err != nil {
		return err
	}
	if inside {
		s.within, s.inner = true, regs.Rip
		return nil
	}
	st.observe(t, &regs, true)
	return nil
}

// Leave ends the stepping of a stopped thread.
func (st *Stepper) Leave(t *tracee.Thread) error {
	delete(st.threads, t)
	return st.breaks.ResumeAt(t)
}
