package debug

import (
	"errors"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
)

// mark is a checkpoint that a replay has left on its way.
type mark struct {
	checkpoint *replay.Checkpoint
	// at is the position: an event, and not more than one leg, which is a LegMoment.
	at Position
}

// marks are those of a session, the ones that were used last at the end.
type marks struct {
	list []*mark
	// after is the time that a replay runs before it leaves another one.
	after time.Duration
	// used counts the routes that began at a mark.
	used int
}

const (
	// mostMarks bounds their number: each is a process. Their memory is bounded by Stopped.RoomFor.
	mostMarks = 12
	// markAfter is marks.after.
	markAfter = 50 * time.Millisecond
)

// close gives up all of them.
func (m *marks) close() {
	for _, x := range m.list {
		x.checkpoint.Close()
	}
	m.list = nil
}

// best returns the mark from which a route is the shortest, and that count as used; nil: the route begins at the start of the recording.
func (m *marks) best(r *route) *mark {
	found := -1
	for i, x := range m.list {
		if x.leadsTo(r) && (found < 0 || x.isAfter(m.list[found])) {
			found = i
		}
	}
	if found < 0 {
		return nil
	}
	x := m.list[found]
	m.used++
	m.list = append(slices.Delete(m.list, found, found+1), x)
	return x
}

// before returns the last mark before a position at which none of the breakpoints is; nil: there is none.
func (m *marks) before(to *Position, breakpoints []evidence.Addr) *mark {
	var last *mark
	for _, x := range m.list {
		if x.precedes(to) && (len(x.at.Legs) == 0 || !slices.Contains(breakpoints, x.at.Legs[0].PC)) && (last == nil || x.isAfter(last)) {
			last = x
		}
	}
	if last != nil {
		m.used++
	}
	return last
}

// precedes reports whether the mark is before a position, and not at it.
func (x *mark) precedes(to *Position) bool {
	switch {
	case to.End || x.checkpoint.Before(to.Event):
		return true
	case x.at.Event != to.Event || len(to.Legs) == 0:
		return false
	case len(x.at.Legs) == 0:
		return true
	}
	there, here := &to.Legs[0], &x.at.Legs[0]
	return there.Kind == LegMoment && there.Thread == here.Thread && there.PC == here.PC && there.Count > here.Count
}

// count is the number of arrivals since the event.
func (x *mark) count() uint64 {
	if len(x.at.Legs) == 0 {
		return 0
	}
	return x.at.Legs[0].Count
}

// isAfter compares two marks that lead to one position.
func (x *mark) isAfter(y *mark) bool {
	if x.checkpoint.Events != y.checkpoint.Events {
		return x.checkpoint.Events > y.checkpoint.Events
	}
	return x.count() > y.count()
}

// leadsTo reports whether the route can begin at the mark: all that it stops at and counts is after it.
func (x *mark) leadsTo(r *route) bool {
	if r.seen != nil || r.slow {
		return false
	}
	if r.counts.PC != 0 && !x.isBefore(r.countsFrom()) {
		return false
	}
	if r.to.Event.Thread == 0 || x.isBefore(r.to.Event) {
		return true
	}
	if r.tally != nil || r.counts.PC != 0 || x.at.Event != r.to.Event || len(r.to.Legs) == 0 {
		return false
	}
	to, here := &r.to.Legs[0], &x.at.Legs[0]
	return to.Kind == LegMoment && to.Thread == here.Thread && to.PC == here.PC && to.Count >= here.Count &&
		(!r.single || to.Count-here.Count < many)
}

// isBefore reports whether an event is after the mark, or the mark is right at it.
func (x *mark) isBefore(event evidence.Moment) bool {
	return x.checkpoint.Before(event) || len(x.at.Legs) == 0 && x.at.Event == event
}

// leave leaves a mark where a replay has stopped. Without one, later replays take longer, so it is no error that the process
// cannot be copied or that there is no room.
func (m *marks) leave(s *replay.DebugStop, at Position) error {
	if slices.ContainsFunc(m.list, func(x *mark) bool {
		return x.at.Event == at.Event && slices.EqualFunc(x.at.Legs, at.Legs, func(a, b Leg) bool { return a.PC == b.PC && a.Count == b.Count })
	}) || !s.RoomFor(len(m.list)+1) {
		return nil
	}
	checkpoint, err := s.Checkpoint()
	var impossible *replay.NoCheckpointError
	if errors.As(err, &impossible) {
		return nil
	}
	if err != nil {
		return err
	}
	m.list = append(m.list, &mark{checkpoint, at})
	if len(m.list) > mostMarks {
		m.list[0].checkpoint.Close()
		m.list = slices.Delete(m.list, 0, 1)
	}
	return nil
}
