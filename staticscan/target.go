package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// badTarget blames the call that went to where there is no code.
func (t *originSearch) badTarget(sig *evidence.Signal) error {
	pc := t.in.Frames[0].PC()
	t.blame.Role, t.blame.Value = RoleTarget, &pc
	if len(t.in.Frames) < 2 || t.in.Frames[1].Kind == evidence.SignalFrame {
		t.lose("no caller is known, so what went to this address is not", nil, -1)
		return nil
	}
	if t.in.Frames[1].Trust == evidence.TrustScan {
		t.lose("what went to this address is not known: the frame below it is only a guess", nil, -1)
		return nil
	}
	s, err := t.newSlice(t.in, 1, jumpedFrom(t.in))
	if err != nil {
		t.lose(err.Error(), nil, -1)
		return nil
	}
	t.guess = t.in.Frames[1].Trust.Guess() && t.in.Frames[1].Trust != evidence.TrustPrologue
	if s.now < 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		t.lose("no call leads here: a return to an overwritten address, or a jump", s, -1)
		return nil
	}
	c, ok := target(&s.a.flow.insts[s.now])
	if v, known := s.targetOf(c, ok); !ok || known && evidence.Addr(v) != pc {
		jumper, from, found := s.jumpedTo(pc)
		if !found {
			t.place(s)
			t.lose("the call before it goes elsewhere: a function jumped on from there, or returned to an overwritten address", s, s.now)
			return nil
		}
		s, c = jumper, from
	}
	t.describeFailure(s, c)
	t.blame.Value = &pc
	t.follow(s, c)
	return nil
}

// targetOf is where the call or jump at s.now goes, if c is its target.
func (s *backwardSlice) targetOf(c culprit, isTarget bool) (uint64, bool) {
	if !isTarget {
		return 0, false
	}
	return s.culpritValue(c)
}

// jumpedTo opens the function that the call at s.now went to, at its only
// jump through a pointer that leads to pc. Nothing was executed since, so the
// registers of the failure are those at the jump.
func (s *backwardSlice) jumpedTo(pc evidence.Addr) (*backwardSlice, culprit, bool) {
	to, ok := s.calledAddress()
	if !ok || to == pc {
		return nil, culprit{}, false
	}
	a, err := s.analyse(to)
	if err != nil {
		return nil, culprit{}, false
	}
	var found *backwardSlice
	var from culprit
	for i := range a.flow.insts {
		in := &a.flow.insts[i]
		c, ok := target(in)
		if !ok || in.Flow != x86.FlowJump {
			continue
		}
		first := &s.in.Frames[0]
		f := &unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustPrologue, CFA: first.Registers.SP() + 8,
			Lookup: image.AtInstruction, Registers: first.Registers}
		f.Registers.Set(image.RIP, in.PC)
		next := s.openSlice(s.in, s.index-1, f, a, f.Registers)
		v, known := next.culpritValue(c)
		switch {
		case !known || evidence.Addr(v) != pc:
		case found != nil:
			return nil, culprit{}, false
		default:
			found, from = next, c
		}
	}
	return found, from, found != nil
}

// jumpedFrom gives the registers at a call that went nowhere: no instruction
// was executed since, so all but the stack pointer are as at the failure.
func jumpedFrom(in *Input) image.Registers {
	regs := in.Frames[1].Registers
	for r := image.RAX; r <= image.R15; r++ {
		if v, ok := in.Frames[0].Registers.Get(r); ok && r != image.RSP {
			regs.Set(r, v)
		}
	}
	return regs
}
