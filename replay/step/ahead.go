package step

import (
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
	"diagnose/replay/translate"
)

// copies execute threads ahead.
type copies struct {
	translator *translate.Translator
	// position is the number of events done when the copies were last compared with the code.
	position uint64
}

// runAhead executes a thread in copies of its code, as far as there are any. ran: it is at another instruction, which has not
// been reported. spent: Most is reached.
func (st *Stepper) runAhead(t *tracee.Thread, regs *ptrace.Registers) (ran, spent bool, err error) {
	if !st.Ahead || st.Each == nil || st.On != nil {
		return false, false, nil
	}
	s, c := st.threads[t], &st.copies
	if c.translator == nil {
		c.translator = translate.New(st.process)
	}
	if c.position != s.position {
		// Only events change code, or which code there is.
		if err := c.translator.Renew(); err != nil {
			return false, false, err
		}
		c.position = s.position
	}
	most := st.left - 1
	x := Executed{Thread: t.Index, Ordinal: s.ordinal, FSBase: regs.Fs_base, GSBase: regs.Gs_base, Ahead: true}
	done, err := c.translator.Run(t, regs, translate.Request{Most: most, Skip: st.skipped(), Each: func(done *translate.Step) {
		x.PC, x.General, x.Inst, x.Holds = done.Inst.PC, done.General, done.Inst, done.Holds
		st.each(&x)
	}})
	if err != nil || done.Executed == 0 {
		return false, false, err
	}
	s.last = done.Last
	if done.Executed > most {
		st.left = 0
		return true, true, nil
	}
	st.left -= done.Executed - 1
	return true, false, nil
}
