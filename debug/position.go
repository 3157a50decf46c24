package debug

import (
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
)

// Position is a point of a recording: the same in every replay of it. Its zero value is no position.
type Position struct {
	// End is the recording's end, where the other fields are not set.
	End bool
	// Event is the last event of a thread, as a Moment without a PC: the thread's first instruction of the program after it.
	Event evidence.Moment
	// Signal: the event is a signal, and the position before the first instruction of its handler.
	Signal bool
	// inside: the legs begin where the thread has done the event and is still in the recording library.
	inside bool
	// Legs lead from there to the position.
	Legs []Leg
}

// Leg is a part of the way to a position.
type Leg struct {
	Kind LegKind
	// Thread is the thread that moves; 0: any.
	Thread uint32
	// Count is how many instructions, arrivals or accesses the leg has.
	Count uint64
	// PC is the instruction of arrivals. State are the registers of a LegState.
	PC    evidence.Addr
	State []byte
	// Watch is the word of accesses.
	Watch replay.Watch
}

// LegKind is how a leg is measured.
type LegKind uint8

// The kinds of legs.
const (
	LegSteps    LegKind = iota // instructions of the program that the thread executes
	LegArrivals                // arrivals at PC after the leg's start
	LegMoment                  // arrivals at PC since the position's event, as a Moment counts them; the first leg only
	LegAccesses                // accesses to the word
	LegState                   // the first arrival at PC with the registers State
)

// PositionOf returns the position of a Moment.
func PositionOf(m evidence.Moment) Position {
	p := Position{Event: evidence.Moment{Thread: m.Thread, Ordinal: m.Ordinal}}
	if m.PC != 0 {
		p.Legs = []Leg{{Kind: LegMoment, Thread: m.Thread, PC: m.PC, Count: max(m.Count, 1)}}
	}
	return p
}

// AtSignal reports whether the handler of a signal is to begin at the position.
func (p *Position) AtSignal() bool { return p.Signal && len(p.Legs) == 0 }

// IsOf reports whether the position is known to be one of a thread.
func (p *Position) IsOf(thread uint32) bool {
	return !p.End && p.Event.Thread == thread && !slices.ContainsFunc(p.Legs, func(l Leg) bool { return l.Thread != thread })
}

// Moment returns the position as a Moment, if it has that form.
func (p *Position) Moment() (evidence.Moment, bool) {
	m := p.Event
	switch {
	case p.End || p.Signal || p.Event.Thread == 0:
		return m, false
	case len(p.Legs) == 0:
		return m, true
	case len(p.Legs) > 1 || p.Legs[0].Kind != LegMoment:
		return m, false
	}
	m.PC, m.Count = p.Legs[0].PC, p.Legs[0].Count
	return m, true
}

// Steps returns the position after n more instructions of a thread.
func (p *Position) Steps(thread uint32, n uint64) Position {
	q := Position{Event: p.Event, Signal: p.Signal, Legs: slices.Clone(p.Legs)}
	if n == 0 {
		return q
	}
	if i := len(q.Legs) - 1; i >= 0 && q.Legs[i].Kind == LegSteps && q.Legs[i].Thread == thread {
		q.Legs[i].Count += n
		return q
	}
	q.Legs = append(q.Legs, Leg{Kind: LegSteps, Thread: thread, Count: n})
	return q
}

// then returns the position at the end of one more leg. from is the pc before it.
func (p *Position) then(leg Leg, from evidence.Addr) Position {
	q := Position{Event: p.Event, Signal: p.Signal, Legs: slices.Clone(p.Legs)}
	n := len(q.Legs)
	last := func(back int) *Leg {
		if n < back {
			return &Leg{}
		}
		return &q.Legs[n-back]
	}
	same := func(l *Leg) bool {
		return l.Kind == leg.Kind && l.Count > 0 && l.Thread == leg.Thread && l.PC == leg.PC && l.Watch == leg.Watch
	}
	counts := leg.Kind == LegArrivals || leg.Kind == LegAccesses
	switch {
	case counts && same(last(1)):
		last(1).Count += leg.Count
	case leg.Kind == LegArrivals && last(1).Kind == LegSteps && last(1).Count == 1 && same(last(2)) && from != leg.PC:
		// A breakpoint is passed by a step, which arrived elsewhere.
		last(2).Count += leg.Count
		q.Legs = q.Legs[:n-1]
	default:
		q.Legs = append(q.Legs, leg)
	}
	return q
}

// back returns the position one instruction before, if the last leg shows it.
func (p *Position) back(thread uint32) (Position, bool) {
	n := len(p.Legs)
	if n == 0 || p.Legs[n-1].Kind != LegSteps || p.Legs[n-1].Thread != thread {
		return Position{}, false
	}
	q := Position{Event: p.Event, Signal: p.Signal, Legs: slices.Clone(p.Legs)}
	if q.Legs[n-1].Count--; q.Legs[n-1].Count == 0 {
		q.Legs = q.Legs[:n-1]
	}
	return q, true
}
