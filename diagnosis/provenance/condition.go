package provenance

import (
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Condition is a branch that decided.
type Condition struct {
	// PC is its instruction, Next the one that the thread executed after it; 0: there is none in the trace.
	PC, Next evidence.Addr
	// Tested are the first 8 bytes of each value that was compared, as far as they are known.
	Tested []uint64
	// Compare is the instruction right before the branch that compared the values; nil: another one did.
	Compare *x86.Inst
	// Entry is the first instruction of the function that the branch is in, Caller the address to which that returns; 0: the
	// trace does not have the call.
	Entry, Caller evidence.Addr
	// Step is that of the branch.
	Step int
	// values are those that were compared, as they were before step compared.
	values   []flow.Location
	compared int
}

// outcomeOf is the definition of the flags by a comparison, if d is that by a test of a byte which has the outcome of one: code that was not optimised
// keeps it (cmp, setb, test). Else it is d.
func (s *slice) outcomeOf(d flow.Definition) flow.Definition {
	if d.At < 0 || s.trace.Step(d.At).Inst == nil || s.trace.Step(d.At).Inst.Op != "test" || len(values(d)) == 0 {
		return d
	}
	set := s.trace.Define(values(d)[0], d.At)
	if set.At < 0 || s.trace.Step(set.At).Inst == nil || !strings.HasPrefix(s.trace.Step(set.At).Inst.Op, "set") {
		return d
	}
	for _, place := range transfer.Condition(s.trace.Step(set.At).Inst) {
		if compared := s.trace.Define(s.located(set.At, place), set.At); compared.At >= 0 {
			return compared
		}
	}
	return d
}

// Compared is a value that a condition compared, or of which such a value was made: its first 8 bytes, if they are Known, and the way that it had come.
type Compared struct {
	Way   *Way
	Value uint64
	Known bool
	// Of is the value that was made of this one and another, on the way of what the condition compared; nil: the condition compared this one.
	Of *uint64
}

// Origins are the values that a condition of a trace compared, but for constants of the code. Where one was made of two others, so that its way ends there, these
// follow it.
func (c *Condition) Origins(t *flow.Trace, p Program) (list []Compared) {
	f := newFollower(t, p)
	for _, l := range c.values {
		if l.Space != transfer.Memory && f.constant(l, c.compared) {
			continue
		}
		x := f.compared(l, c.compared)
		list = append(list, x)
		w := x.Way
		if w.End != Undecided || len(w.parts) == 0 {
			continue
		}
		of, known := f.value(w.whole, w.partsAt+1)
		if !known {
			continue
		}
		for _, part := range w.parts {
			y := f.compared(part, w.partsAt)
			y.Of = &of
			list = append(list, y)
		}
	}
	return list
}

// compared follows bytes, as they are before step n.
func (f *follower) compared(l flow.Location, n int) Compared {
	x := Compared{Way: Value(f.trace, f.program, l, n)}
	x.Value, x.Known = f.value(l, n)
	return x
}

// branch adds what a branch tested.
func (s *slice) branch(at int) {
	if s.decided[at] {
		return
	}
	s.decided[at] = true
	c := s.condition(at)
	own := s.program.Own(c.PC)
	if !own && len(s.out.Conditions) == 0 && s.program.OfTemplate(c.PC) {
		c.PC, c.Entry, c.Caller = s.ownPlace(at), 0, 0
		own = c.PC != 0
	}
	if own {
		s.out.Conditions = append(s.out.Conditions, c)
	}
	inst := s.trace.Step(at).Inst
	places := transfer.Condition(inst)
	if inst.Flow == x86.FlowJump {
		places = jumpedBy(inst)
	}
	for _, place := range places {
		s.near = append(s.near, wanted{l: s.located(at, place), n: at})
	}
	s.far = append(s.far, wanted{n: at})
}

// condition describes the branch of a step.
func (s *slice) condition(at int) Condition {
	step := s.trace.Step(at)
	c := Condition{PC: step.PC, Step: at}
	if next := s.trace.Next(at); next >= 0 {
		c.Next = s.trace.Step(next).PC
	}
	if call := s.frames.call[at]; call != none {
		if entered := s.trace.Next(call); entered >= 0 {
			c.Entry = s.trace.Step(entered).PC
			c.Caller = s.trace.Step(call).PC + evidence.Addr(s.trace.Step(call).Inst.Len)
		}
	}
	for _, place := range transfer.Condition(step.Inst) {
		d := s.outcomeOf(s.trace.Define(s.located(at, place), at))
		if d.At < 0 || s.trace.Step(d.At).Inst == nil {
			continue
		}
		c.values, c.compared = values(d), d.At
		for _, x := range c.values {
			if v, known := s.value(x, d.At); known {
				c.Tested = append(c.Tested, v)
			}
		}
		if d.At == s.trace.Previous(at) {
			c.Compare = s.trace.Step(d.At).Inst
		}
		break
	}
	return c
}
