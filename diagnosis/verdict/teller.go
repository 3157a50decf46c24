package verdict

import (
	"fmt"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
)

// teller makes of a way through a trace the places and sentences that a report has.
type teller struct {
	process *image.Process // nil: there is no core
	program *provenance.Image
	failure *evidence.Failure
	source  func(*evidence.Site) (string, bool)
	folded  func(*evidence.Site, uint64) evidence.OpenEnd // Input.foldedEnd
	object  func(evidence.Addr) *evidence.HeapObject      // nil: none is known
}

// heapAt is the heap object at an address, as the process failed.
func (x *teller) heapAt(addr evidence.Addr) (flow.HeapObject, bool) {
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
func (x *teller) objectOf(w *provenance.Way) *evidence.HeapObject {
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

// site is a place of the program; nil if it is none.
func (x *teller) site(pc evidence.Addr) *evidence.Site {
	if pc == 0 {
		return nil
	}
	return x.program.Site(pc)
}

// root is the place that a way names as the one to change.
func (x *teller) root(w *provenance.Way) *evidence.Site {
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
func (x *teller) spoiled(w *provenance.Way) *provenance.Link {
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
func (x *teller) cause(v *victim, w *provenance.Way) *evidence.Cause {
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
func (x *teller) telling(w *provenance.Way) *provenance.Way {
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
func (x *teller) onWay(w *provenance.Way, s *evidence.Site) bool {
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

// sameLine reports whether two places are known to be of one line of the source.
func (x *teller) sameLine(a, b evidence.Addr) bool {
	s, o := x.site(a), x.site(b)
	return s != nil && o != nil && s.File != "" && s.File == o.File && s.Line == o.Line
}
