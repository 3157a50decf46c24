package verdict

import (
	"errors"
	"slices"
	"time"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// mostSearched bounds the search by watchpoints for what a trace has shown. With debug registers it takes seconds; where pages
// are protected instead, minutes.
const mostSearched = 2 * time.Minute

// search makes the chain of a victim. Where a trace has shown the cause, the chain can only add experiments, and is bounded
// by mostSearched and two thirds of the time that is left; a chain that was not finished then is nil. Of a run with several threads, whose
// orders of accesses are still to be looked at, a chain has a third of the time that is left; what it found by then is kept.
func (w *work) search(v victim, from beginning, found *followed) (*chain, error) {
	c := &chain{work: w, victim: v}
	bound := mostSearched
	limit, limited := w.progress.ctx.Deadline()
	switch {
	case found != nil && limited:
		bound = min(bound, time.Until(limit)*2/3)
	case found != nil:
	case limited && len(w.Process.Threads) > 1:
		bound = time.Until(limit) / 3
	default:
		return c, c.follow(from)
	}
	end := w.progress.within(bound)
	err := c.follow(from)
	if over := end(); err == nil || !over || w.progress.ended() != nil {
		return c, err
	}
	if found != nil {
		return nil, nil
	}
	return c, errPart
}

// followed is what a trace shows of a victim.
type followed struct {
	exact *exact
	way   *provenance.Way
	cause *evidence.Cause
	// passed: the cause is a call on the way, which handed the value over for a parameter of another type.
	passed bool
}

// endsBefore reports whether what a way tells depends on what was before the trace: the value itself, the object out of which a loop counted a pointer, or that
// of the pointer to which an offset was added.
func endsBefore(w *provenance.Way) bool {
	return w == nil || w.End == provenance.Initial || w.End == provenance.Loop || w.Has(provenance.Offset) && w.End != provenance.Outside
}

// tracedCauses finds the causes that a trace of the failing run shows.
type tracedCauses struct {
	in          *Input
	rec         *record.Recording
	out         *evidence.Diagnosis
	progress    *progress
	moments     *moments
	exact       *exact
	early       *earlyReads
	conclusion  *conclusion
	experiments *experiments
}

// recorded makes the trace, if it was not made before; false: that failed. Of a run that is too long there may be none.
func (t *tracedCauses) recorded() bool {
	err := t.exact.record(t.progress.ctx, t.in.Image, t.progress.say)
	return err == nil || errors.Is(err, errLong)
}

// follow follows a victim's value through a trace of the run; nil: there is no trace, or it does not decide.
func (t *tracedCauses) follow(v *victim) *followed {
	if v.use && v.way == nil {
		return nil
	}
	if !t.recorded() {
		return nil
	}
	if v.outside != nil {
		return t.indexed(v.outside)
	}
	way := t.exact.way(v)
	if endsBefore(way) && (v.finding == nil || v.finding.Damage == nil) {
		if begun := t.exact.runaway(t.progress.ctx, t.in.Image, t.progress.say); begun != nil {
			way = begun
		}
	}
	if way == nil {
		return nil
	}
	for _, l := range way.Overtaken {
		t.early.note(l.Addr, l.Size, "")
	}
	if !way.Broke() {
		if passed := t.passedOn(way); passed != nil {
			return &followed{t.exact, way, passed, true}
		}
	}
	if way.End == provenance.Initial { // that nothing stored there says little
		return nil
	}
	cause := t.exact.cause(v, way)
	if cause == nil {
		return nil
	}
	return &followed{t.exact, way, cause, false}
}

// indexed follows the index by which something was read outside of an array: what was read there is no value of the program's. It is nil if the trace does
// not decide.
func (t *tracedCauses) indexed(o *staticscan.Outside) *followed {
	way := t.exact.index(o)
	if way == nil || way.End == provenance.Undecided || way.End == provenance.Initial {
		return nil
	}
	name := "the index"
	if isName(o.Index.CellName) {
		name = o.Index.CellName
	}
	cause := t.exact.cause(&victim{kind: evidence.CauseBadValue, name: name}, way)
	if cause == nil {
		return nil
	}
	cause.Summary, cause.Outside = outsideText(o)+": "+cause.Summary, outsideAccess(o)
	return &followed{t.exact, way, cause, false}
}

// beforeTrace is the memory from which a trace of the end of the run read the bad value, where that was there before; nil: there is
// none, or it is the victim itself.
func (t *tracedCauses) beforeTrace(v *victim) *victim {
	x := t.exact
	if v.damaged() || v.use || v.outside != nil || x.trace == nil || x.whole {
		return nil
	}
	way := x.way(v)
	if way == nil || !way.FromMemory() || way.From.Size > wordSize || way.From.Addr == v.start || way.Value == nil {
		return nil
	}
	return &victim{kind: v.kind, name: v.name, start: way.From.Addr, size: way.From.Size, value: way.Value, readPC: way.ReadPC}
}

// alone is for a failure whose value is in no memory that the case names: a trace may show where it came from.
func (t *tracedCauses) alone() {
	name := t.in.Case.Failure.Pointer
	switch {
	case t.in.Case.Failure.Kind == evidence.InvalidFree && name == "":
		name = "the pointer that was freed"
	case name != "":
	case t.in.Case.Failure.Kind == evidence.DivisionByZero:
		name = "the divisor"
	case t.in.Case.Failure.Fault == nil:
		return
	default:
		name = "the address"
		for _, step := range t.in.Case.Failure.Origin {
			if step.Symbol != "" {
				name = step.Symbol
				break
			}
		}
	}
	if f := t.follow(&victim{kind: evidence.CauseBadValue, name: name}); f != nil {
		t.out.Causes = append(t.out.Causes, *f.cause)
	}
}

// alone reports whether a search by watchpoints adds nothing: the value that it would follow was good, or another object's, or is that of a
// loop which it would follow for too long; or the types say where it went wrong; or the memory had no element of a vector.
func (f *followed) alone() bool {
	noElement := f.way.End == provenance.Outside && f.way.Declared != nil && f.way.Declared.Room > 0
	return f.way == f.exact.begun || f.cause.Open == evidence.OpenRestored || f.cause.Open == evidence.OpenReused || f.passed || noElement
}

// at reports whether a cause is at the place that the trace shows.
func (f *followed) at(cause *evidence.Cause) bool {
	s := f.cause.Site
	return cause.Site != nil && cause.Site.File == s.File && cause.Site.Line == s.Line
}

// chosen adds to the story of a value that no code stored, or that was read outside of its object, the way of the offset by which the code chose it. A value
// that no code stored counts if others next to it were stored.
func (t *tracedCauses) chosen(v *victim, cause *evidence.Cause) {
	if v.outside == nil && cause.Basis != evidence.BasisInitial && cause.Kind != evidence.CauseUninitialised {
		return
	}
	if !t.recorded() {
		return
	}
	if v.outside != nil {
		if led := t.exact.index(v.outside); led != nil && cause.Site != nil && cause.Site.PC == v.outside.Site.PC {
			cause.Story = append(t.exact.offsetStory(led), t.exact.step(outsideText(v.outside), cause.Site))
		}
		return
	}
	way := t.exact.follow(v)
	if way == nil || way.End != provenance.Initial && way.End != provenance.Zeroed {
		return
	}
	if read := t.exact.site(way.AccessPC); read == nil || cause.Site == nil || read.Function != cause.Site.Function || read.Line != cause.Site.Line {
		return
	}
	if way.Led != nil {
		cause.Story = append(t.exact.offsetStory(way.Led), cause.Story...)
	}
	cause.Story = append(t.exact.besideStory(way), cause.Story...)
}

// weigh chooses between the cause that the trace shows and one that the search by watchpoints found. The same place, or one on
// the way that an experiment proved, has experiments; but where the way ends at an access that broke a rule, that is the cause. What was overwritten by another thing has another place only if an experiment
// proved it; and where the way ends at a library's result, the search may have followed what the library made it of.
func (f *followed) weigh(cause *evidence.Cause) *evidence.Cause {
	switch {
	case f.at(cause):
		switch {
		case f.way.End == provenance.Outside && f.cause.Object != nil && (cause.Object == nil || cause.Object.Addr != f.cause.Object.Addr):
			f.cause.Experiments = cause.Experiments
			return f.cause // the object that the pointer was derived from is meant, and not the one before the address
		case f.way.End == provenance.Freed && (cause.Kind == evidence.CauseBadValue || cause.Kind == evidence.CauseBadInput):
			if cause.Proof != evidence.Proved {
				f.cause.Experiments = cause.Experiments
				return f.cause
			}
			cause.Kind, cause.Summary = f.cause.Kind, f.cause.Summary // what the heap put there is no value of the program's
		case !overwritten(f.exact.telling(f.way)) || cause.Kind != evidence.CauseBadValue && cause.Kind != evidence.CauseBadInput:
		case cause.Proof == evidence.Proved:
			cause.Kind = f.cause.Kind
		default:
			f.cause.Experiments = cause.Experiments
			return f.cause // the way back of a part of the value says nothing
		}
	case overwritten(f.exact.telling(f.way)) && cause.Proof != evidence.Proved:
		return f.cause
	case f.way.Broke() && (cause.Kind == evidence.CauseBadValue || cause.Kind == evidence.CauseBadInput):
		f.cause.Experiments = cause.Experiments // of stores on the way, which handed the value on
		return f.cause
	case cause.Proof == evidence.Proved && (f.way.End == provenance.Returned || f.exact.onWay(f.way, cause.Site)):
	default:
		return f.cause
	}
	if led := f.way.Led; led != nil && (led.End != provenance.Undecided || f.way.End == provenance.Unset || !f.exact.sameLine(led.PC, f.way.AccessPC)) {
		cause.Story = append(f.exact.offsetStory(led), cause.Story...) // what led there
	}
	cause.Story = slices.Concat(f.exact.besideStory(f.way), f.exact.sizeStory(f.way), cause.Story)
	return cause
}

// overwritten reports whether a way ends at a store that put another thing over what was meant to be there.
func overwritten(w *provenance.Way) bool {
	return w.End == provenance.Pieces || w.End == provenance.Overwrote
}
