package debug

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
)

// search looks for the last stop at halts before a session's position. The recording is watched in parts, from one mark to the next, the last
// part first: a stop near the position is found by a short replay.
type search struct {
	s     *Session
	halts Halts
	// last is the stop; nil: there was none.
	last *Stop
	// from is where the part begins that has it: a mark, or, if not marked, the first event. hits are the stops in the part of each kind.
	from   Position
	marked bool
	hits   map[halt]uint64
	// contents are those of the watched words after the last access.
	contents []byte
}

// halt is one of Halts.
type halt struct {
	watch replay.Watch
	pc    evidence.Addr
}

func haltOf(stop *Stop) halt {
	if stop.Kind == replay.StopWatch {
		return halt{watch: stop.Watch}
	}
	return halt{pc: evidence.Addr(stop.PC)}
}

func (r *search) run() error {
	if len(r.halts.Watches) > 0 {
		if err := replay.WatchesWork(); err != nil {
			return err
		}
	}
	events, err := r.s.signalEvents(r.halts.Signals)
	if err != nil {
		return err
	}
	signals := map[evidence.Moment]bool{}
	for _, e := range events {
		signals[e] = true
	}
	end := r.s.at
	for {
		x := r.s.marks.before(&end, r.halts.Breakpoints)
		err := r.watch(x, end, signals)
		if err != nil && x != nil && !errors.Is(err, ErrInterrupted) && r.s.ctx.Err() == nil {
			// What the checkpoints lack the whole replay may have.
			r.s.marks.close()
			x, end = nil, r.s.at
			err = r.watch(nil, end, signals)
		}
		if err != nil || r.last != nil || x == nil {
			return err
		}
		end = x.at
		r.s.way.doing = fmt.Sprintf("there was no stop after event %d of %d; looking further back", x.checkpoint.Events, r.s.events)
	}
}

// watch replays the part of the recording from a mark, or from its start, to a position, and notes the last stop.
func (r *search) watch(from *mark, to Position, signals map[evidence.Moment]bool) error {
	r.last, r.hits, r.contents = nil, map[halt]uint64{}, nil
	if r.from, r.marked = (Position{Event: r.s.first}), from != nil; from != nil {
		r.from = from.at
	}
	plan := r.halts.plan()
	first := r.s.first
	begins := func(stop *Stop) bool {
		return !r.marked && stop.Kind == replay.StopEvent && stop.Thread == first.Thread && stop.Ordinal == first.Ordinal
	}
	note := func(d *replay.DebugStop, stop Stop) error {
		if begins(&stop) {
			// Nothing leads to what the dynamic linker did before.
			r.last, r.hits = nil, map[halt]uint64{}
			return nil
		}
		r.hits[haltOf(&stop)]++
		if stop.Kind == replay.StopWatch {
			r.contents = readWords(d, r.halts.Watches)
		}
		r.last = &stop
		return nil
	}
	if from == nil {
		signals = maps.Clone(signals)
		signals[first] = true
	}
	l, here, err := r.s.travel(&route{to: to, base: plan, signals: signals, from: from, chosen: true,
		seen: func(d *replay.DebugStop) error { return note(d, stopOf(d, &plan)) }})
	if err != nil {
		return err
	}
	defer l.close()
	if here.Kind == replay.StopWatch && slices.Contains(r.halts.Watches, here.Watch) {
		// The access that led here is before the position.
		return l.do(func(d *replay.DebugStop) error { return note(d, here) })
	}
	return nil
}

// target returns where the stop is: before the instruction that has the breakpoint, or that made the access, or at the signal.
func (r *search) target() (Position, error) {
	last := r.last
	if last.Kind == replay.StopEvent {
		return Position{Event: evidence.Moment{Thread: last.Thread, Ordinal: last.Ordinal}, Signal: true}, nil
	}
	m := evidence.Moment{Thread: last.Thread, Ordinal: last.Ordinal, PC: evidence.Addr(last.PC), Count: last.arrivals}
	if last.Kind == replay.StopWatch || !r.counted() {
		var err error
		if m, err = r.s.absolute(r.position(), last); err != nil {
			return Position{}, err
		}
	}
	if last.Kind == replay.StopWatch {
		return r.s.before(m)
	}
	return PositionOf(m), nil
}

// counted reports whether the part has all arrivals since the event that is the last one of the stop's thread.
func (r *search) counted() bool {
	return !r.marked || r.last.sinceEvent || len(r.from.Legs) == 0 && r.from.Event == evidence.Moment{Thread: r.last.Thread, Ordinal: r.last.Ordinal}
}

// position returns the stop's position, by the number of stops of its kind since the part's start.
func (r *search) position() Position {
	of := haltOf(r.last)
	leg := Leg{Kind: LegArrivals, PC: of.pc, Count: r.hits[of]}
	if r.last.Kind == replay.StopWatch {
		leg = Leg{Kind: LegAccesses, Watch: of.watch, Count: r.hits[of]}
	}
	p := Position{Event: r.from.Event, inside: len(r.from.Legs) == 0, Legs: slices.Clone(r.from.Legs)}
	p.Legs = append(p.Legs, leg)
	return p
}
