package staticscan

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/x86"
)

// argumentStep goes on in the caller, with the register that the value came
// in by, at the call instruction.
func (t *trail) argumentStep(s *slice, n *node) (*slice, *node) {
	step := evidence.OriginStep{Kind: evidence.OriginArgument, Register: regName(n.reg), Proof: evidence.Inferred}
	site := t.site(s.a.function.entry)
	step.Site = &site
	step.Text = fmt.Sprintf("it came into %s in %s", s.a.function.name, n.reg)
	if e, ok := s.parameter(n.reg); ok {
		step.Symbol, step.Type = e.Name, typeName(e.Type)
		step.Text = fmt.Sprintf("it came into %s as its argument %s", s.a.function.name, e.Name)
	}
	if v, ok := n.best(); ok {
		step.Value = addrOf(v)
	}
	caller, why := t.caller(s, n.reg)
	if caller != nil {
		// The call itself is in the code, and was checked to lead here.
		step.Proof = evidence.FromCore
	}
	t.add(step)
	if caller == nil {
		t.lose(why, nil, -1)
		return s, nil
	}
	arg := caller.register(caller.now, n.reg, 0)
	t.nameArgument(caller, arg)
	return caller, arg
}

// caller is the slice of the caller, as long as there are hops left.
func (t *trail) caller(s *slice, r x86.Reg) (*slice, string) {
	if t.hops--; t.hops < 0 {
		return nil, "the value was followed through enough callers"
	}
	next, why := s.caller(r)
	if next != nil {
		t.guess = t.guess || next.frame.Trust.Guess()
	}
	return next, why
}

// caller opens the frame outward and makes sure that its call leads to the
// function of s; otherwise it says why there is none.
func (s *slice) caller(r x86.Reg) (*slice, string) {
	if !passesArgument(r) {
		return nil, fmt.Sprintf("%s carries no argument; it is what the caller left there", r)
	}
	if s.outward != nil {
		return s.outward, ""
	}
	if s.in == nil || s.index+1 >= len(s.in.Frames) || s.hop >= maxSteps {
		return nil, "the caller is not known"
	}
	f := &s.in.Frames[s.index+1]
	if f.Kind == evidence.SignalFrame {
		return nil, "the kernel called this function for a signal"
	}
	next, err := s.newSlice(s.in, s.index+1, f.Registers)
	if err != nil {
		return nil, err.Error()
	}
	if next.now < 0 || next.a.flow.insts[next.now].Flow != x86.FlowCall {
		return nil, fmt.Sprintf("no call precedes the return address in %s", next.a.function.name)
	}
	in := &next.a.flow.insts[next.now]
	if in.HasTarget && !s.a.function.contains(s.callee(evidence.Addr(in.Target))) {
		return nil, fmt.Sprintf("%s called another function, which jumped on to %s", next.a.function.name, s.a.function.name)
	}
	next.hop = s.hop + 1
	s.outward = next
	return next, ""
}

// passesArgument reports whether a register carries an argument (System V
// ABI, AMD64 supplement, figure 3.4: rax and r10 have uses of their own).
func passesArgument(r x86.Reg) bool {
	switch r {
	case x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9, x86.R10:
		return true
	}
	return false
}

// nameArgument puts the blame into the terms of the program's own function
// when the failing one was a library's.
func (t *trail) nameArgument(s *slice, arg *node) {
	if t.named || !t.in.isOwn(s.frame) {
		return
	}
	t.named = true
	t.place(s)
	b := &t.blame
	e, ok := s.describe(arg, 0)
	if !ok {
		return
	}
	b.Pointer, b.PointerType = e.text, typeName(e.typ)
	if b.Role != RolePointer {
		return
	}
	if text, p, ok := through(e.text, e.typ, 0, 1, false); ok {
		b.Accessed, b.AccessedType = text, typeName(p.typ)
	} else {
		b.Accessed, b.AccessedType = "*"+grouped(e.text), ""
	}
}
