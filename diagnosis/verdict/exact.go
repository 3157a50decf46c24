package verdict

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/staticscan"
)

// exact follows values through a trace of the failing run. It is made once, when it is first asked.
type exact struct {
	rec     *record.Recording
	process *image.Process // nil: there is no core
	handled *eventlog.HandledSignal
	// end is the last event that matters; nil: all do.
	end     *evidence.Moment
	failure *evidence.Failure
	source  func(*evidence.Site) (string, bool)
	folded  func(*evidence.Site, uint64) evidence.OpenEnd // Input.foldedEnd
	object  func(evidence.Addr) *evidence.HeapObject      // nil: none is known
	program *provenance.Image
	trace   *flow.Trace
	// whole: the trace is of the whole run, not of its end.
	whole bool
	// tooLong is an event of the failing thread from which on there are too many instructions.
	tooLong uint64
	// larger is what did not fit; nil: all did, or more than what fitted was followed.
	larger *larger
	// decided is what decided that the program gave up; nil: that is not known, or was not asked.
	decided *provenance.Reasons
	// reaching is what reached returned.
	reaching *provenance.Reached
	// begun is what runaway found; sought: it looked.
	begun  *provenance.Way
	sought bool
	// err says why there is no trace; tried: it was looked for.
	err   error
	tried bool
}

func newExact(in *Input) *exact {
	x := &exact{rec: in.Failing[0], process: in.Process, handled: in.Handled, source: in.SourceLine, folded: in.foldedEnd, object: in.Object}
	if in.Case != nil {
		x.failure = &in.Case.Failure
	}
	if in.Process != nil {
		x.program = provenance.NewImage(in.Process)
	}
	return x
}

// heapAt is the heap object at an address, as the process failed.
func (x *exact) heapAt(addr evidence.Addr) (flow.HeapObject, bool) {
	if x.object == nil {
		return flow.HeapObject{}, false
	}
	o := x.object(addr)
	if o == nil {
		return flow.HeapObject{}, false
	}
	return flow.HeapObject{Addr: o.Addr, Size: o.Size, Freed: o.State != evidence.HeapLive}, true
}

// objectOf is the heap object that a way ends at, with the stacks of its calls if they are known; nil: it ends at none.
func (x *exact) objectOf(w *provenance.Way) *evidence.HeapObject {
	if w.Object == nil || w.Object.Mapped() {
		return nil
	}
	object := &evidence.HeapObject{Addr: w.Object.Addr, Size: w.Object.Size, State: evidence.HeapLive}
	if w.Object.Freed >= 0 {
		object.State = evidence.HeapFreed
	}
	if x.object != nil {
		if o := x.object(object.Addr); o != nil && o.Addr == object.Addr && o.Size == object.Size {
			return o
		}
	}
	return object
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

// last is the failing instruction's step, or the last one of the thread that failed in a call; -1: the trace has none.
func (x *exact) last() int {
	n := x.trace.Last(x.failing())
	if x.handled == nil {
		return n
	}
	for n >= 0 && (x.trace.Step(n).Ordinal >= x.handled.Ordinal || x.trace.Step(n).Library) {
		n = x.trace.Previous(n)
	}
	return n
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

// failed reports whether the trace ends at the instruction that raised the signal, if one did.
func (x *exact) failed() bool {
	n := x.last()
	switch f := x.failure; {
	case n < 0:
		return false
	case f.Fault == nil && f.Kind != evidence.DivisionByZero, f.Instruction == nil:
		return true
	default:
		return x.trace.Step(n).PC == f.Instruction.PC
	}
}

// site is a place of the program; nil if it is none.
func (x *exact) site(pc evidence.Addr) *evidence.Site {
	if pc == 0 {
		return nil
	}
	return x.program.Site(pc)
}

// root is the place that a way names as the one to change.
func (x *exact) root(w *provenance.Way) *evidence.Site {
	var stores []provenance.Link
	for _, l := range w.Links {
		if l.Kind == provenance.Stored {
			stores = append(stores, l)
		}
	}
	if l := x.spoiled(w); l != nil {
		return x.site(l.PC)
	}
	switch w.End {
	case provenance.Outside:
		return x.site(w.AccessPC)
	case provenance.Freed:
		return freedAt(x.process, x.objectOf(w), x.site(w.PC))
	case provenance.Returned, provenance.Input, provenance.Tested, provenance.Made, provenance.Loop, provenance.Overwrote, provenance.Left, provenance.Undecided,
		provenance.Reused:
		return x.site(w.PC)
	case provenance.Unset, provenance.Zeroed, provenance.Initial:
		return x.site(w.AccessPC)
	case provenance.Pieces:
		for i := range stores {
			if !stores[i].Handed {
				return x.site(stores[i].PC) // whatever is copied there is no value of this word
			}
		}
		return x.site(w.PC)
	case provenance.Constant:
		if len(stores) == 0 {
			return x.site(w.PC)
		}
		// A good address is wrong only where it was put.
		last := &stores[len(stores)-1]
		if first := &stores[0]; first.Known && first.Value >= 1<<16 && x.program.Mapped(evidence.Addr(first.Value)) {
			return x.site(first.PC)
		}
		s, made := x.site(last.PC), x.site(w.PC)
		if made != nil && (s == nil || s.Function != made.Function) {
			return made // it was handed over as an argument
		}
		return s
	}
	return x.failure.Site
}

// spoiled is the link that made of the good address of an object what is none, if the program failed by an address; nil: none did.
func (x *exact) spoiled(w *provenance.Way) *provenance.Link {
	if x.failure.Fault == nil {
		return nil
	}
	return w.Spoiled()
}

// freedAt is where an object was freed whose call of free was made at a place of the program. The heap passes over the program's own
// functions around free. A tail call leaves no frame: such a function is passed over here, and another one is the place.
func freedAt(p *image.Process, o *evidence.HeapObject, own *evidence.Site) *evidence.Site {
	if own == nil || o == nil || o.Freed == nil || o.Freed.Site == nil {
		return own
	}
	for i := range o.Freed.Stack.Frames {
		if f := &o.Freed.Stack.Frames[i].Site; f.Function == own.Function && f.Line == own.Line {
			return o.Freed.Site
		}
	}
	if p == nil {
		return own
	}
	chain := p.Symbolize(own.PC, image.AtInstruction)
	wraps := image.WrapsHeap(p, own.PC, image.AtInstruction, chain, image.FreesMemory)
	for i := range chain {
		if chain[i].Site.Function == own.Function && wraps[i] {
			return o.Freed.Site
		}
	}
	return own
}

// cause says what a way found; nil if that names no place.
func (x *exact) cause(v *victim, w *provenance.Way) *evidence.Cause {
	named := x.telling(w)
	out := &evidence.Cause{Kind: causeKind(named), Basis: basis(named), Variable: v.name, Site: x.root(named), Proof: evidence.Replayed}
	if out.Site == nil {
		return nil
	}
	if x.spoiled(named) != nil {
		out.Basis = evidence.BasisStore
	}
	if v.finding != nil {
		out.Object = v.finding.Object
	}
	switch o := x.objectOf(named); {
	case o == nil:
	case named.End == provenance.Freed:
		if out.Invalidated = image.InvalidatedBy(o.Freed); out.Invalidated != nil {
			out.Site = out.Invalidated.Site
		}
	case named.End == provenance.Outside:
		out.Object = o
	}
	if d := named.Declared; d != nil && d.Member {
		out.Proof = evidence.Inferred
	}
	if named.End == provenance.Unset && named.Part != "" {
		out.Variable = named.Part
	}
	if named.End == provenance.Undecided {
		out.Open, out.Variable = evidence.OpenOrigin, ""
	} else if out.Kind == evidence.CauseBadInput && gaveUp[x.failure.Kind] {
		out.Open = evidence.OpenInput
	} else if named.End == provenance.Reused {
		out.Open, out.Variable = evidence.OpenReused, named.Reuse.Read
	} else if named.Restored {
		out.Open = evidence.OpenRestored
	} else if named.End == provenance.Zeroed && named.Has(provenance.Stored) {
		out.Open = evidence.OpenOrigin // what was handed on may be meant to be 0
	} else if v, known := constantOf(named); known {
		// The instruction that has the constant may be one for several statements.
		if made := x.folded(x.site(named.PC), v); made != "" {
			out.Open = x.folded(out.Site, v)
		}
	}
	out.Story = x.story(w)
	out.Summary = x.summary(v, named, out.Site)
	if i := out.Invalidated; i != nil {
		out.Summary = fmt.Sprintf("%s, called in %s, freed memory%s", i.Function, siteText(out.Site), x.uses(named))
	}
	return out
}

// constantOf is the constant at which a way ends.
func constantOf(w *provenance.Way) (value uint64, known bool) {
	switch n := len(w.Links); {
	case w.End != provenance.Constant:
		return 0, false
	case n > 0 && w.Links[n-1].Known:
		return w.Links[n-1].Value, true
	case w.Value != nil:
		return *w.Value, true
	}
	return 0, false
}

// telling is the way that a cause names. That the failing instruction's own access is outside of an object is the failure: what made its
// offset says more, if it is known, or if it is known that another function made it.
func (x *exact) telling(w *provenance.Way) *provenance.Way {
	led := w.Led
	if w.End != provenance.Outside || !w.Failing || led == nil {
		return w
	}
	if led.End == provenance.Undecided {
		if made, failed := x.site(led.PC), x.site(w.AccessPC); made == nil || failed == nil || made.Function == failed.Function {
			return w
		}
	}
	return led
}

func causeKind(w *provenance.Way) evidence.CauseKind {
	switch w.End {
	case provenance.Input:
		return evidence.CauseBadInput
	case provenance.Returned:
		if readers[libraryName(w.Call)] || converters[libraryName(w.Call)] {
			return evidence.CauseBadInput
		}
	case provenance.Unset:
		return evidence.CauseUninitialised
	case provenance.Pieces, provenance.Overwrote:
		return evidence.CauseOverwritten
	case provenance.Freed:
		return evidence.CauseUseAfterFree
	case provenance.Outside:
		switch {
		case w.Declared != nil && w.Write:
			return evidence.CauseOverwritten
		case w.Declared != nil:
			return evidence.CauseBadValue
		case w.Beyond < 0:
			return evidence.CauseHeapUnderflow
		}
		return evidence.CauseHeapOverflow
	}
	return evidence.CauseBadValue
}

// basis is what a cause that names a way rests on.
func basis(w *provenance.Way) evidence.Basis {
	switch w.End {
	case provenance.Input:
		return evidence.BasisInput
	case provenance.Returned:
		return evidence.BasisResult
	case provenance.Unset:
		return evidence.BasisUndefined
	case provenance.Freed, provenance.Left:
		return evidence.BasisLifetime
	case provenance.Outside:
		return evidence.BasisBounds
	case provenance.Pieces, provenance.Overwrote:
		return evidence.BasisOverwritten
	case provenance.Made:
		return evidence.BasisType
	case provenance.Loop:
		return evidence.BasisCount
	case provenance.Initial, provenance.Zeroed:
		return evidence.BasisInitial
	case provenance.Constant, provenance.Tested:
		return evidence.BasisConstant
	}
	return evidence.BasisStore
}

// onWay reports whether a place is one that a way leads through.
func (x *exact) onWay(w *provenance.Way, s *evidence.Site) bool {
	if s == nil {
		return false
	}
	same := func(pc evidence.Addr) bool {
		o := x.site(pc)
		return o != nil && o.File == s.File && o.Line == s.Line
	}
	if same(w.PC) || same(w.AccessPC) {
		return true
	}
	for _, l := range w.Links {
		if same(l.PC) {
			return true
		}
	}
	return w.Led != nil && x.onWay(w.Led, s)
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

// sameLine reports whether two places are known to be of one line of the source.
func (x *exact) sameLine(a, b evidence.Addr) bool {
	s, o := x.site(a), x.site(b)
	return s != nil && o != nil && s.File != "" && s.File == o.File && s.Line == o.Line
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

// mostSearched bounds the search by watchpoints for what a trace has shown. With debug registers it takes seconds; where pages
// are protected instead, minutes.
const mostSearched = 2 * time.Minute

// search makes the chain of a victim. Where a trace has shown the cause, the chain can only add experiments, and is bounded
// by mostSearched and two thirds of the time that is left; a chain that was not finished then is nil.
func (w *work) search(v victim, from beginning, found *followed) (*chain, error) {
	c := &chain{work: w, victim: v}
	if found == nil {
		return c, c.follow(from)
	}
	bound := mostSearched
	if end, limited := w.progress.ctx.Deadline(); limited {
		bound = min(bound, time.Until(end)*2/3)
	}
	end := w.progress.within(bound)
	err := c.follow(from)
	if over := end(); err != nil && over && w.progress.ended() == nil {
		return nil, nil
	}
	return c, err
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
// loop which it would follow for too long; or the types say where it went wrong.
func (f *followed) alone() bool {
	return f.way == f.exact.begun || f.cause.Open == evidence.OpenRestored || f.cause.Open == evidence.OpenReused || f.passed
}

// at reports whether a cause is at the place that the trace shows.
func (f *followed) at(cause *evidence.Cause) bool {
	s := f.cause.Site
	return cause.Site != nil && cause.Site.File == s.File && cause.Site.Line == s.Line
}

// chosen adds to the story of a value that nobody stored, or that was read outside of its object, the way of the offset by which the code chose it. What
// nobody stored counts if others beside it have been stored.
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
	if way == nil || way.Led == nil || way.End != provenance.Initial && way.End != provenance.Zeroed {
		return
	}
	if read := t.exact.site(way.AccessPC); read != nil && cause.Site != nil && read.Function == cause.Site.Function && read.Line == cause.Site.Line {
		cause.Story = append(t.exact.offsetStory(way.Led), cause.Story...)
	}
}

// index is the way of the index of an access outside of an array; nil: the trace does not have it.
func (x *exact) index(o *staticscan.Outside) *provenance.Way {
	if x.trace == nil {
		return nil
	}
	return provenance.Index(x.trace, x.program, x.last(), o.Site.PC, o.Addr, o.From, o.Size)
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
	cause.Story = append(f.exact.sizeStory(f.way), cause.Story...)
	return cause
}

// overwritten reports whether a way ends at a store that put another thing over what was meant to be there.
func overwritten(w *provenance.Way) bool {
	return w.End == provenance.Pieces || w.End == provenance.Overwrote
}
