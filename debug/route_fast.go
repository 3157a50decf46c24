package debug

import (
	"errors"
	"slices"

	"diagnose/replay"
)

// many is the number of arrivals from which on they are counted at full speed.
const many = 1000

// errTurns says that arrivals of several threads were counted together.
var errTurns = errors.New("debug: other threads ran meanwhile")

// hasten counts the arrivals of a Moment at full speed, if they are many and nothing else stops the process on the way.
func (r *route) hasten(s *replay.DebugStop) (err error) {
	l := r.current()
	if r.slow || l == nil || l.Kind != LegMoment || r.left < many || r.seen != nil || r.counting && !r.countsOnLeg() {
		return nil
	}
	r.stage = r.left
	if r.marks != nil && !r.single && !r.counting && r.left > fewArrivals {
		r.stage -= r.left / stages
	}
	list := []replay.Arrivals{{PC: l.PC, Count: r.stage}}
	if r.counting && r.counts.PC != l.PC {
		list = append(list, replay.Arrivals{PC: r.counts.PC})
	}
	if r.hastens, err = s.Tally(list); !r.hastens && r.counting && err == nil {
		r.slow = true
		r.countByStops()
	}
	return err
}

const (
	// fewArrivals are counted without a mark on the way: that takes some 5 ms. A mark is left where one of so many stages is left.
	fewArrivals = 1 << 20
	stages      = 8
)

// countByStops lets the replay count the arrivals by stops, not at full speed.
func (r *route) countByStops() {
	r.base.Counted = append(slices.Clone(r.base.Counted), r.counts.PC)
}

// hastened handles the stop to which arrivals were counted at full speed.
func (r *route) hastened(s *replay.DebugStop) error {
	r.hastens = false
	if s.Kind != replay.StopTally || len(s.Tallies) == 0 {
		return errTurns
	}
	if err := r.staged(s); err != nil {
		return err
	}
	if r.countsOnLeg() {
		r.counts.Count = s.Tallies[len(s.Tallies)-1]
		r.countByStops()
	}
	return nil
}

// errStages says that arrivals could be counted from an event on, but not from a mark.
var errStages = errors.New("debug: arrivals cannot be counted from within a leg")

// staged handles the end of a stage of a leg that is counted at full speed.
func (r *route) staged(s *replay.DebugStop) error {
	r.left -= r.stage
	if !r.counting {
		l := *r.current()
		l.Count -= r.left
		if err := r.leave(s, Position{Event: r.to.Event, Legs: []Leg{l}}); err != nil {
			return err
		}
	}
	if r.left == 0 {
		return nil
	}
	return r.hastenAgain(s)
}

// hastenAgain is hasten within a leg that has many arrivals.
func (r *route) hastenAgain(s *replay.DebugStop) error {
	if err := r.hasten(s); err != nil {
		return err
	}
	if r.left >= many && !r.hastens && r.seen == nil {
		return errStages
	}
	return nil
}

// countsOnLeg reports whether arrivals are counted together with those of a Moment that has many.
func (r *route) countsOnLeg() bool {
	return !r.slow && r.counting && r.to.Event == r.countsFrom() && len(r.to.Legs) > 0 && r.to.Legs[0].Kind == LegMoment && r.to.Legs[0].Count >= many
}
