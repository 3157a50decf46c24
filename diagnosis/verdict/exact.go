package verdict

import (
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/staticscan"
)

// exact follows values through a trace of the failing run. The trace is made once, when it is first asked.
type exact struct {
	window
	// of is the trace that decided and reaching were asked of.
	of *flow.Trace
	// decided is what decided that the program gave up; nil: that is not known, or was not asked.
	decided *provenance.Reasons
	// reaching is what reached returned.
	reaching *provenance.Reached
	// begun is what runaway found; sought: it looked.
	begun  *provenance.Way
	sought bool
}

func newExact(in *Input) *exact {
	t := teller{process: in.Process, source: in.SourceLine, folded: in.foldedEnd, object: in.Object}
	if in.Case != nil {
		t.failure = &in.Case.Failure
	}
	if in.Process != nil {
		t.program = provenance.NewImage(in.Process)
	}
	return &exact{window: window{teller: t, rec: in.Failing[0], handled: in.Handled}}
}

// way follows what a victim had: memory that was damaged, or the value that the failing instruction could not use. It is nil if the
// trace does not decide.
func (x *exact) way(v *victim) *provenance.Way {
	if w := x.follow(v); w != nil && w.End != provenance.Undecided {
		return w
	}
	return nil
}

// offset is the way of a victim of which the trace tells as much as that an offset was bad, and the address that it was added to was good;
// nil: it tells more, or not even that.
func (x *exact) offset(v *victim) *provenance.Way {
	w := x.follow(v)
	if w == nil || w.End != provenance.Undecided && (w.End != provenance.Initial || !x.whole) || x.root(w) == nil {
		return nil
	}
	if !w.Has(provenance.Offset) {
		return nil
	}
	return w
}

func (x *exact) follow(v *victim) *provenance.Way {
	if v.way != nil {
		return v.way
	}
	if x.trace == nil || x.failure == nil {
		return nil
	}
	if !x.failed() {
		if w := x.handedOut(v); w != nil {
			return provenance.FirstBroken(x.trace, x.program, w, x.whole)
		}
		return nil
	}
	last := x.last()
	var w *provenance.Way
	var ok bool
	switch {
	case v.damaged() && v.finding != nil && v.finding.Damage != nil:
		w, ok = provenance.Damaged(x.trace, x.program, last, v.start, v.size)
		if !ok && x.failure.Fault != nil { // no store of the trace did it
			w, ok = provenance.Failing(x.trace, x.program, last)
		}
	case v.damaged() && x.failure.Kind != evidence.UseAfterFree && x.failure.Fault == nil:
	case x.failure.Kind == evidence.InvalidFree:
		if last >= 0 {
			w, ok = provenance.Value(x.trace, x.program, flow.Register(x.trace.Step(last).Thread, x86.RDI, 8), last), true
		}
	case x.failure.Fault != nil || x.failure.Kind == evidence.DivisionByZero:
		if w, ok = provenance.Failing(x.trace, x.program, last); ok {
			w = x.strayed(provenance.FirstBroken(x.trace, x.program, w, x.whole), last)
		}
	case !v.damaged() && !v.use:
		if w = x.tested(); w == nil {
			w = x.set()
		}
		ok = w != nil
	}
	if !ok {
		return nil
	}
	return w
}

// strayed is the way to the first access outside of an object, if a loop without an end had come out of it long before the instruction of step last failed;
// else it is w.
func (x *exact) strayed(w *provenance.Way, last int) *provenance.Way {
	if w.End != provenance.Loop {
		return w
	}
	first := provenance.Strayed(x.trace, x.program, last)
	if first < 0 {
		return w
	}
	found, ok := provenance.Failing(x.trace, x.program, first)
	if !ok {
		return w
	}
	if found = provenance.FirstBroken(x.trace, x.program, found, x.whole); found.End != provenance.Outside {
		return w
	}
	found.Failing = false // it is another access than the one that failed
	return found
}

// tested is the way of the only value that the condition of a failed assertion compared with constants; nil: there is none, or the trace does
// not decide.
func (x *exact) tested() *provenance.Way {
	r := x.reasons()
	if x.failure.Kind != evidence.AssertionFailure || r == nil || len(r.Conditions) == 0 {
		return nil
	}
	compared := r.Conditions[0].Origins(x.trace, x.program)
	if len(compared) != 1 || compared[0].Way.End == provenance.Undecided || x.outcome(compared[0].Way, &r.Conditions[0]) {
		return nil
	}
	return compared[0].Way
}

// outcome reports whether a way is that of a constant which the condition's own line has: code that was not optimised stores whether a part
// of a condition is true, and tests that.
func (x *exact) outcome(w *provenance.Way, c *provenance.Condition) bool {
	return w.End == provenance.Constant && x.sameLine(w.PC, c.PC)
}

// set is the way to the constant that alone decided; nil: there is none.
func (x *exact) set() *provenance.Way {
	if r := x.reasons(); r != nil {
		return r.Set
	}
	return nil
}

// stale are the ways to the first uses of freed objects.
func (x *exact) stale() []*provenance.Way {
	if x.trace == nil || x.failure == nil {
		return nil
	}
	return provenance.Stale(x.trace, x.program, x.rec.Manifest.Outcome.Thread)
}

// handedOut is the way of what the last call of the trace handed to a function that the trace has no steps of, such as printf of the recording library,
// if the program failed there by just that value; nil: it did not, or two of the arguments have it.
func (x *exact) handedOut(v *victim) *provenance.Way {
	last := x.last()
	if last < 0 || x.failure.Fault == nil || x.failure.Instruction == nil || v.damaged() || !x.program.Foreign(x.failure.Instruction.PC) {
		return nil
	}
	bad := uint64(x.failure.Fault.Addr)
	if v.value != nil && v.size == wordSize {
		bad = *v.value
	}
	var held []x86.Reg
	for _, r := range x86.ArgumentRegisters {
		if x.trace.Register(last, r) == bad {
			held = append(held, r)
		}
	}
	if len(held) != 1 {
		return nil
	}
	return provenance.Value(x.trace, x.program, flow.Register(x.trace.Step(last).Thread, held[0], wordSize), last)
}

// instead is a lead in place of a cause that the search by watchpoints found, if the trace tells that another value was bad than the one that
// this followed; else it is nil.
func (x *exact) instead(v *victim, cause *evidence.Cause) *evidence.Cause {
	if cause.Open != "" || v.damaged() || v.use || v.outside != nil || cause.Kind != evidence.CauseBadValue && cause.Kind != evidence.CauseBadInput {
		return nil
	}
	w := x.offset(v)
	if w == nil || cause.Site != nil && slices.ContainsFunc(w.Links, func(l provenance.Link) bool { return l.PC == cause.Site.PC }) {
		return nil
	}
	lead := x.cause(v, w)
	if lead != nil {
		lead.Open = evidence.OpenOrigin
	}
	return lead
}

// computedAt is a lead to the place that computed a divisor of 0 of other values; nil: the trace does not have it.
func (x *exact) computedAt(v *victim) *evidence.Cause {
	w := x.follow(v)
	if w == nil {
		return nil
	}
	made := -1
	for i, l := range w.Links {
		if !l.Known || l.Value != 0 {
			break
		}
		if l.Kind == provenance.Computed {
			made = i
		}
	}
	if made < 0 {
		return nil
	}
	to := *w
	to.Links, to.End, to.PC, to.Led = w.Links[:made+1], provenance.Undecided, w.Links[made].PC, nil
	return x.cause(v, &to)
}

// index is the way of the index of an access outside of an array; nil: the trace does not have it.
func (x *exact) index(o *staticscan.Outside) *provenance.Way {
	if x.trace == nil {
		return nil
	}
	return provenance.Index(x.trace, x.program, x.last(), o.Site.PC, o.Addr, o.From, o.Size)
}
