package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/staticscan"
)

// callEvents is behind how many events a call may have been made that a library was
// in at a store: of its own it may have a few (a line that is read in parts).
const callEvents = 16

// callSite is a call of the program's with what the replay told of it.
type callSite struct {
	staticscan.CallSite
	// at is where the thread stood before it; its Count is 0 if that was not looked
	// for.
	at evidence.Moment
}

// hitArrivals are those that may have led to a hit, but for the pc.
func hitArrivals(l *link, hit *replay.Hit) arrivals {
	return arrivals{thread: hit.Thread, ordinal: hit.Ordinal, events: callEvents, before: hitBefore(l.plan, l.log, &l.access)}
}

// callSite finds the instruction of the program's by which the frames inside of
// the given one came to be: its call, or, where that led to a function that jumped
// on, the jump.
func (vs *visits) callSite(in staticscan.Input, frame int, a arrivals) (callSite, error) {
	call, ok := staticscan.CallOf(in, frame)
	if !ok {
		return callSite{}, fmt.Errorf("no call is before %v", in.Frames[frame].PC())
	}
	found := callSite{CallSite: call}
	sp := uint64(in.Frames[frame].Registers.SP())
	if call.To == 0 {
		// Through a pointer that is not known any more.
		if err := vs.standAtCall(&found, sp, a); err != nil {
			return found, err
		}
	}
	if found.To == 0 {
		return found, fmt.Errorf("the call at %v does not tell where it went", call.PC)
	}
	if staticscan.Library(in.Process, found.To) {
		return found, nil
	}
	for _, tail := range staticscan.TailCalls(in, found.To, in.Frames[frame-1].PC()) {
		jump := callSite{CallSite: tail}
		if err := vs.findCall(&jump, sp-wordSize, a); err != nil {
			return found, err
		}
		if jump.at.Count > 0 {
			return jump, nil
		}
	}
	return found, fmt.Errorf("the call at %v leads to a function that jumped on by ways that are not known", call.PC)
}

// findCall finds when the call was made, by the stack pointer.
func (vs *visits) findCall(x *callSite, sp uint64, a arrivals) (err error) {
	a.pc = x.PC
	a.is = func(r *image.Registers) bool { return uint64(r.SP()) == sp }
	x.at, err = vs.moments.last(a)
	return err
}

// standAtCall finds when a call was made and where it led.
func (vs *visits) standAtCall(x *callSite, sp uint64, a arrivals) error {
	if err := vs.findCall(x, sp, a); err != nil || x.at.Count == 0 {
		return err
	}
	return vs.moments.standAt(x.at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		call, _ := staticscan.CallOf(staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, 1).Frames}, 0)
		x.To = call.To
		return nil
	})
}

// jumpedFrom puts the function of the program's own into the link's stack that left
// no frame there.
func (l *link) jumpedFrom(p *image.Process, at callSite) {
	if !at.Tail {
		return
	}
	calls := p.Symbolize(at.PC, image.AtInstruction)
	for len(calls) > 0 && image.LibraryCode(&calls[0].Site) {
		calls = calls[1:]
	}
	var frames []evidence.Frame
	for _, call := range calls {
		f := evidence.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: call.Site}
		if call.Inlined {
			f.Kind = evidence.Inlined
		}
		frames = append(frames, f)
	}
	if len(frames) == 0 {
		return
	}
	own := 0
	for own < len(l.seen.Stack.Frames) && l.seen.Site != nil && l.seen.Stack.Frames[own].Site.PC != l.seen.Site.PC {
		own++
	}
	frames = append(frames, l.seen.Stack.Frames[min(own, len(l.seen.Stack.Frames)):]...)
	for i := range frames {
		frames[i].Index = i
	}
	l.seen.Stack.Frames, l.seen.Site = frames, &frames[0].Site
}

// handedTo is the memory that the program had a value from which a library's function was
// handed and kept in its own part of the stack; nil if that is not known, or if two of its
// arguments have the value.
func (vs *visits) handedTo(l *link, in staticscan.Input) (*victim, error) {
	if l.victim.damaged() || l.victim.value == nil || l.victim.size != wordSize {
		return nil, nil
	}
	var held []image.Register
	for _, r := range arguments {
		if v, known := in.Thread.Registers.Get(r); known && v == *l.victim.value {
			held = append(held, r)
		}
	}
	if len(held) != 1 {
		return nil, nil
	}
	b, err := staticscan.Passed(in, held[0])
	if err != nil || b.Cell == nil {
		return nil, err
	}
	v := &victim{kind: evidence.CauseBadValue, name: b.CellName, typ: b.CellType, start: *b.Cell, size: max(1, min(b.CellSize, wordSize)), readPC: b.Loaded.PC}
	if !isName(v.name) {
		v.name = nameOf(vs.in.Process, vs.in.Object, v.start)
	}
	if v.size == wordSize {
		v.value = l.victim.value
	}
	return v, nil
}

// storedByCall asks the code at the call what a library was told to store, where
// what the call left in the registers does not tell.
func (vs *visits) storedByCall(l *link, in staticscan.Input, hit *replay.Hit, addr evidence.Addr) (staticscan.Store, error) {
	own := staticscan.OwnFrame(in)
	if own < 1 {
		return staticscan.Store{}, fmt.Errorf("the store at %v was made for none of the program's own code", hit.PC)
	}
	a := hitArrivals(l, hit)
	at, err := vs.callSite(in, own, a)
	if err != nil {
		return staticscan.Store{}, err
	}
	if at.at.Count == 0 {
		if err := vs.findCall(&at, uint64(in.Frames[own].Registers.SP()), a); err != nil {
			return staticscan.Store{}, err
		}
	}
	if at.at.Count == 0 {
		return staticscan.Store{}, fmt.Errorf("the call at %v was not made again", at.PC)
	}
	var store staticscan.Store
	err = vs.moments.standAt(at.at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		const frames = 64
		in := staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, frames).Frames}
		var err error
		if store, err = staticscan.StoredByCall(in, addr, staticscan.OriginOptions{}); err != nil {
			return err
		}
		if sp := t.Registers.SP(); l.access.By == evidence.ByProgram && addr < sp && sp-addr <= maxFrame {
			l.inner = true
			l.handed, err = vs.handedTo(l, in)
		}
		return err
	})
	l.jumpedFrom(in.Process, at)
	return store, err
}
