package debug

import (
	"bytes"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
)

// route leads a replay to a position.
type route struct {
	to Position
	// base is in force all the way. seen is called at its stops before the position.
	base replay.DebugPlan
	seen func(*replay.DebugStop) error
	// signals are events at which it also stops.
	signals map[evidence.Moment]bool
	// handler is that of the position's event, if it is a signal.
	handler evidence.Addr
	// counts, if its PC is not 0, has the arrivals of its thread at PC counted since the event: Count is their
	// number at the end.
	counts evidence.Moment
	// last is the last event of the thread with which the recording ends.
	last evidence.Moment
	// counting: the event has occurred. fast: the arrivals are counted at full speed.
	counting, fast bool
	// slow: nothing is counted at full speed. hastens: the current leg is.
	slow, hastens bool

	// tally, if it is not empty, is counted from the position's event to the first of it that is complete, where the
	// route ends. tallied are the counts; nil: they are not known.
	tally   []replay.Arrivals
	tallied []uint64

	// from is where the route begins; nil: at the start of the recording. chosen: the caller has set it. marks, if set, are left on the way. marked is when that
	// was done last, or the route began.
	from   *mark
	chosen bool
	marks  *marks
	marked time.Time
	// single: a leg that is counted at full speed has no marks. stage is the number of arrivals up to the next one.
	single bool
	stage  uint64

	started bool // the position's event has occurred
	legs    []Leg
	leg     int    // the current one
	left    uint64 // the steps, arrivals or accesses still to come
}

// events are those at which the replay is to stop.
func (r *route) events() []evidence.Moment {
	var list []evidence.Moment
	if r.counts.PC != 0 {
		list = append(list, r.countsFrom())
	}
	if e := r.to.Event; e.Thread != 0 && !slices.Contains(list, e) {
		list = append(list, e)
	}
	others := list
	for e := range r.signals {
		if !slices.Contains(others, e) {
			list = append(list, e)
		}
	}
	if r.marks == nil || r.seen != nil {
		return list
	}
	for _, e := range r.near() {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// near are events of a thread before the position, at growing distance, where marks may be left. None is after one from which on
// arrivals are counted.
func (r *route) near() (list []evidence.Moment) {
	e := r.to.Event
	switch {
	case r.counts.PC != 0:
		e = r.countsFrom()
	case e.Thread == 0:
		e = r.last
	}
	const growth = 8
	for distance := uint64(0); distance < e.Ordinal; distance = max(distance, 1) * growth {
		list = append(list, evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal - distance})
	}
	return list
}

// leave leaves a mark at a position, if the last one is long ago.
func (r *route) leave(s *replay.DebugStop, at Position) error {
	if r.marks == nil || r.seen != nil || time.Since(r.marked) < r.marks.after {
		return nil
	}
	err := r.marks.leave(s, at)
	r.marked = time.Now()
	return err
}

// resume continues from the mark where the route begins, in the first leg.
func (r *route) resume(s *replay.DebugStop) error {
	x := r.from
	r.from = nil
	if len(x.at.Legs) == 0 || x.at.Event != r.to.Event {
		return nil
	}
	r.started, r.legs = true, r.to.Legs
	if r.left = r.legs[0].Count - x.count(); r.left == 0 {
		return nil
	}
	return r.hastenAgain(s)
}

func (r *route) countsFrom() evidence.Moment {
	return evidence.Moment{Thread: r.counts.Thread, Ordinal: r.counts.Ordinal}
}

// next handles a stop on the way. there: it is at the position.
func (r *route) next(s *replay.DebugStop) (plan replay.DebugPlan, there bool, err error) {
	if r.tally != nil {
		return r.takeTally(s)
	}
	resumed := r.from != nil && len(r.from.at.Legs) > 0
	if resumed {
		if err := r.resume(s); err != nil {
			return plan, false, err
		}
	}
	if s.Kind == replay.StopEvent {
		if err := r.atEvent(s); err != nil {
			return plan, false, err
		}
	}
	if !resumed {
		if s.Kind == replay.StopEnd {
			err := r.atEnd(s)
			return plan, err == nil, err
		}
		if err := r.advance(s); err != nil {
			return plan, false, err
		}
	}
	if r.arrived() {
		if r.counting {
			r.counts.Count += s.Arrivals
		}
		return plan, true, nil
	}
	if r.seen != nil && r.isHit(s) {
		if err := r.seen(s); err != nil {
			return plan, false, err
		}
	}
	return r.plan(), false, nil
}

// atEvent leaves a mark at an event. If it is the one from which on arrivals are counted, that begins.
func (r *route) atEvent(s *replay.DebugStop) (err error) {
	if err := r.leave(s, Position{Event: evidence.Moment{Thread: s.Moment.Thread, Ordinal: s.Moment.Ordinal}}); err != nil {
		return err
	}
	if r.counts.PC == 0 || r.counting || !r.reaches(s, r.countsFrom()) {
		return nil
	}
	r.counting = true
	if !r.slow && r.to.End && r.base.Breakpoints == nil && r.base.Watches == nil {
		if r.fast, err = s.Tally([]replay.Arrivals{{PC: r.counts.PC}}); err != nil {
			return err
		}
	}
	if !r.fast && !r.countsOnLeg() {
		r.countByStops()
	}
	return nil
}

// atEnd handles the end of the recording: the number of arrivals is complete.
func (r *route) atEnd(s *replay.DebugStop) error {
	switch {
	case r.hastens || r.fast && len(s.Tallies) == 0:
		return errTurns
	case r.fast:
		r.counts.Count = s.Tallies[0]
	case r.counting:
		r.counts.Count += s.Arrivals
	}
	return nil
}

// advance handles a stop before the end: the position's event, or one on the current leg.
func (r *route) advance(s *replay.DebugStop) error {
	switch {
	case s.Kind == replay.StopEvent && !r.started && r.reaches(s, r.to.Event):
		return r.start(s)
	case r.started && r.hastens:
		return r.hastened(s)
	case r.started:
		return r.progress(s)
	}
	return nil
}

// start begins the first leg at the position's event.
func (r *route) start(s *replay.DebugStop) error {
	r.started, r.legs = true, r.to.Legs
	if !r.to.Signal && !r.to.inside && (len(r.to.Legs) == 0 || r.to.Legs[0].Kind != LegMoment) {
		// The first instruction after the event is the start of the other legs.
		r.legs = append([]Leg{{Kind: LegSteps, Thread: r.to.Event.Thread, Count: 1}}, r.to.Legs...)
	}
	r.begin()
	return r.hasten(s)
}

// arrived begins the next leg where the current one is complete, and reports whether none is left.
func (r *route) arrived() bool {
	for r.started && r.left == 0 && r.current() != nil {
		r.leg++
		r.begin()
	}
	return r.started && r.current() == nil
}

// takeTally handles a stop of a route that counts. It ends at the next stop after its event.
func (r *route) takeTally(s *replay.DebugStop) (plan replay.DebugPlan, there bool, err error) {
	if s.Kind == replay.StopEvent && !r.started {
		r.started = true
		possible, err := s.Tally(r.tally)
		return plan, !possible, err
	}
	r.tallied = s.Tallies
	return plan, true, nil
}

// reaches reports whether the stop is at an event.
func (r *route) reaches(s *replay.DebugStop, e evidence.Moment) bool {
	return s.Moment.Thread == e.Thread && s.Moment.Ordinal == e.Ordinal
}

func (r *route) current() *Leg {
	if r.leg >= len(r.legs) {
		return nil
	}
	return &r.legs[r.leg]
}

// begin starts the current leg.
func (r *route) begin() {
	if l := r.current(); l != nil {
		r.left = max(l.Count, 1)
	}
}

// progress counts a stop on the current leg.
func (r *route) progress(s *replay.DebugStop) error {
	l := r.current()
	if l == nil {
		return nil
	}
	own := l.Thread == 0 || l.Thread == s.Moment.Thread
	switch l.Kind {
	case LegSteps:
		own = own && (s.Kind == replay.StopStep || s.Kind == replay.StopWatch)
	case LegArrivals, LegMoment:
		r.left = s.Left
		return nil
	case LegAccesses:
		own = s.Kind == replay.StopWatch && r.plan().Watches[s.Watch] == l.Watch
	case LegState:
		if own = own && s.Moment.PC == l.PC; own {
			regs, _, err := s.ThreadRegisters(s.Moment.Thread)
			if err != nil {
				return err
			}
			own = bytes.Equal(regs, l.State)
		}
	}
	if own {
		r.left--
	}
	return nil
}

// plan is how the replay continues on the current leg.
func (r *route) plan() replay.DebugPlan {
	plan := r.base
	l := r.current()
	if !r.started || l == nil {
		return plan
	}
	switch l.Kind {
	case LegMoment, LegArrivals:
		if r.hastens {
			return plan
		}
		plan.Until = replay.Arrivals{Thread: l.Thread, PC: l.PC, Count: r.left}
	case LegSteps:
		plan.Step = l.Thread
		if r.leg == 0 && r.left == max(l.Count, 1) && l.Thread == r.to.Event.Thread {
			plan.Handler = r.handler
		}
	case LegAccesses:
		if !slices.Contains(plan.Watches, l.Watch) {
			plan.Watches = append(slices.Clone(plan.Watches), l.Watch)
		}
	case LegState:
		plan.Breakpoints = append(slices.Clone(plan.Breakpoints), l.PC)
	}
	return plan
}

// isHit reports whether a stop is one of the base plan.
func (r *route) isHit(s *replay.DebugStop) bool {
	switch s.Kind {
	case replay.StopWatch:
		return s.Watch < len(r.base.Watches)
	case replay.StopEvent:
		return r.signals[evidence.Moment{Thread: s.Moment.Thread, Ordinal: s.Moment.Ordinal}]
	}
	return slices.Contains(r.base.Breakpoints, s.Moment.PC)
}
