package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Excess is what let an access through a null pointer happen, where the program had counted no elements. Then null may be right, as the
// pointer to none, and the access one too many.
type Excess struct {
	// PC is the branch that let element 0 pass with a limit of 0, or the program's own code that made a size of 0 another one.
	PC evidence.Addr
	// Size is the size in bytes that a function of the C library was handed; 0: a branch decided.
	Size uint64
}

// Empty finds the excess of an access by step n through a null pointer; ok is false if there is none.
func Empty(t *flow.Trace, p Program, n int) (x Excess, ok bool) {
	if n < 0 || t.Step(n).Inst == nil {
		return x, false
	}
	f := newFollower(t, p)
	if entered := f.sized(n); entered >= 0 {
		return f.grown(entered)
	}
	if p.Own(t.Step(n).PC) {
		return f.passed(n)
	}
	return x, false
}

// grown finds the step that made a size of 0 another one, which a function was handed that was entered at a step.
func (f *numbers) grown(entered int) (x Excess, ok bool) {
	l, n := flow.Register(f.trace.Step(entered).Thread, x86.RDX, 8), entered
	if x.Size = f.trace.Register(entered, x86.RDX); x.Size == 0 {
		return x, false
	}
	const most = 32 // steps
	for range most {
		d := f.define(l, n)
		from := f.operands(d)
		if d.At < 0 || len(from) != 1 || d.Kind != flow.Copied && d.Kind != flow.Computed {
			return x, false
		}
		before, known := f.value(from[0], d.At)
		if known && before == 0 && d.Kind == flow.Computed {
			x.PC = f.ownPlace(d.At)
			return x, x.PC != 0 && increments(f.trace.Step(d.At).Inst)
		}
		l, n = from[0], d.At
	}
	return x, false
}

// passed finds a branch before step n in the same function that compared two numbers which were both 0, and the address of step n was made
// of one of them. The other way of the branch leads past the step.
func (f *numbers) passed(n int) (x Excess, ok bool) {
	made := f.parts(n)
	frames := newFrames(f.trace, f.program)
	const most = 8 // branches
	at := frames.before[n]
	for range most {
		if at == none {
			return x, false
		}
		if frames.decides(at, f.trace.Step(n).PC) && f.atLimit(at, made) {
			return Excess{PC: f.trace.Step(at).PC}, true
		}
		at = frames.before[at]
	}
	return x, false
}

// atLimit reports whether a branch compared two numbers that were both 0, one of which was made by one of some steps.
func (f *numbers) atLimit(at int, made []int) bool {
	for _, flag := range transfer.Condition(f.trace.Step(at).Inst) {
		d := f.trace.Define(f.located(at, flag), at)
		from := f.operands(d)
		if d.At < 0 || f.trace.Step(d.At).Inst == nil || f.trace.Step(d.At).Inst.Op != "cmp" || len(from) != 2 {
			continue
		}
		counted := false
		for _, l := range from {
			v, known := f.value(l, d.At)
			if !known || v != 0 {
				return false
			}
			counted = counted || f.copyOf(l, d.At, made)
		}
		return counted
	}
	return false
}

// copyOf reports whether bytes are a copy of what one of some steps made.
func (f *numbers) copyOf(l flow.Location, n int, made []int) bool {
	const most = 8 // copies
	for range most {
		d := f.define(l, n)
		if d.At < 0 || slices.Contains(made, d.At) {
			return d.At >= 0
		}
		if d.Kind != flow.Copied {
			return false
		}
		l, n = d.From[0], d.At
	}
	return false
}

// parts are the steps that made the numbers, of which the address of step n was made, other than pointers; through copies and computations.
func (f *numbers) parts(n int) (list []int) {
	const most = 64
	type place struct {
		l flow.Location
		n int
	}
	var left []place
	s := f.trace.Step(n)
	add := func(l flow.Location, n int) { left = append(left, place{l, n}) }
	for k := range s.Inst.Operands {
		if o := &s.Inst.Operands[k]; o.IsMemory && o.Access != "" {
			for _, r := range []x86.Reg{o.Memory.Base, o.Memory.Index} {
				if r.General() && r != x86.RSP {
					add(flow.Register(s.Thread, r, 8), n)
				}
			}
		}
	}
	for len(left) > 0 && len(list) < most {
		p := left[len(left)-1]
		left = left[:len(left)-1]
		d := f.define(p.l, p.n)
		if d.At < 0 || slices.Contains(list, d.At) {
			continue
		}
		list = append(list, d.At)
		if d.Kind == flow.Copied || d.Kind == flow.Computed {
			for _, from := range f.operands(d) {
				add(from, d.At)
			}
		}
	}
	return list
}
