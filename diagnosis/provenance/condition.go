package provenance

import (
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

// Compared is a value that a condition compared: its first 8 bytes, if they are Known, and the way that it had come.
type Compared struct {
	Way   *Way
	Value uint64
	Known bool
}

// Origins are the values that a condition of a trace compared, but for constants of the code.
func (c *Condition) Origins(t *flow.Trace, p Program) (list []Compared) {
	f := newFollower(t, p)
	for _, l := range c.values {
		if l.Space == transfer.Memory || !f.constant(l, c.compared) {
			x := Compared{Way: Value(t, p, l, c.compared)}
			x.Value, x.Known = f.value(l, c.compared)
			list = append(list, x)
		}
	}
	return list
}

// branch adds what a branch tested.
func (s *slice) branch(at int) {
	if s.decided[at] {
		return
	}
	s.decided[at] = true
	if c := s.condition(at); s.program.Own(c.PC) {
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
		d := s.trace.Define(s.located(at, place), at)
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
