package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
)

// Preemption is a place between two events of a thread where it gives up the right to run.
type Preemption struct {
	Thread uint32 `json:"thread"` // from 1
	// Ordinal is that of the thread's last event before the place, from 1.
	Ordinal uint64 `json:"ordinal"`
	// Class says how the place is identified.
	Class PointClass `json:"class"`
	// PC is set for PointPC only.
	PC evidence.Addr `json:"pc,omitempty"`
	// Count is the number of the arrival, from 1, since the event or, if several preemptions
	// follow the event, since the previous one; 0 for PointEvent.
	Count uint64 `json:"count,omitempty"`
	// Until is how many of the log's events, of all threads, are done when the thread
	// continues. A smaller number than at the event counts as that of the event. A larger
	// number than the thread's next event allows counts as the largest that it allows. With
	// Never, the largest number, a thread that has no later event does not continue.
	Until uint64 `json:"until"`
}

// Never is the Until of a thread that stays where it is.
const Never = ^uint64(0)

// PointClass says how a place between two events is identified: enum dg_point.
type PointClass string

// The classes.
const (
	PointEvent PointClass = "event" // right after the event
	PointCode  PointClass = "code"  // at a point that the code counts by itself
	PointPC    PointClass = "pc"    // at an instruction
)

var pointClasses = map[PointClass]uint64{PointEvent: agent.PointEvent, PointCode: agent.PointCode, PointPC: agent.PointPC}

// String describes the place: "thread 3 after its event 12, at 0x4011f0 for the 2nd time, until
// event 40".
func (p Preemption) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "thread %d after its event %d", p.Thread, p.Ordinal)
	switch p.Class {
	case PointCode:
		fmt.Fprintf(&b, ", at the code's point %d", p.Count)
	case PointPC:
		fmt.Fprintf(&b, ", at %v", p.PC)
		if p.Count > 1 {
			fmt.Fprintf(&b, ", arrival %d", p.Count)
		}
	}
	if p.Until == Never {
		return b.String() + ", for good"
	}
	fmt.Fprintf(&b, ", until %d events are done", p.Until)
	return b.String()
}

// Check returns an error if the preemption is invalid.
func (p Preemption) Check() error {
	_, known := pointClasses[p.Class]
	switch {
	case !known:
		return fmt.Errorf("the class %q", p.Class)
	case p.Thread == 0 || p.Thread >= MostThreads:
		return fmt.Errorf("thread %d", p.Thread)
	case p.Ordinal == 0:
		return errors.New("a place before the thread's first event")
	case (p.Class == PointEvent) != (p.Count == 0):
		return fmt.Errorf("arrival %d at a place of class %q", p.Count, p.Class)
	case (p.Class == PointPC) != (p.PC != 0):
		return fmt.Errorf("address %v of a place of class %q", p.PC, p.Class)
	}
	return nil
}

// MostPreemptions is the maximum number of preemptions of a schedule.
const MostPreemptions = 1 << 14

func CheckPreemptions(list []Preemption) error {
	if len(list) > MostPreemptions {
		return fmt.Errorf("%d preemptions", len(list))
	}
	for i, p := range list {
		if err := p.Check(); err != nil {
			return fmt.Errorf("preemption %d has %w", i+1, err)
		}
	}
	return nil
}

// point is the event of an image for a preemption.
func (p Preemption) point() *Event {
	return &Event{Kind: KindPoint, Flags: agent.EventExtra, Object: uint64(p.PC), Args: []uint64{pointClasses[p.Class], p.Count}}
}

// between is the range of positions of a preemption: after its event, and before the thread's
// next event.
type between struct {
	preemption *Preemption
	low, high  uint64
	until      uint64
	never      bool
}

// WithPreemptions returns the order of events with one more event of a thread for each of its
// preemptions, unless that never ends. Of preemptions that end at the same position, the first of the list ends first.
// A preemption after an event that the order does not have is an error.
func (s Schedule) WithPreemptions(list []Preemption) (Schedule, error) {
	if len(list) == 0 {
		return s, nil
	}
	places, err := s.places(list)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(places, func(a, b between) int { return cmp.Compare(a.until, b.until) })
	out := make(Schedule, 0, len(s)+2*len(places))
	position := uint64(0)
	for _, turn := range s {
		left := turn.Events
		for len(places) > 0 && places[0].until < position+uint64(left) {
			n := uint32(places[0].until - position)
			if n > 0 {
				out = append(out, Turn{turn.Thread, n})
			}
			out = out.Add(places[0].preemption.Thread)
			position, left, places = position+uint64(n), left-n, places[1:]
		}
		out = append(out, Turn{turn.Thread, left})
		position += uint64(left)
	}
	for _, p := range places {
		out = out.Add(p.preemption.Thread)
	}
	return out, nil
}

// places returns where the preemptions may end.
func (s Schedule) places(list []Preemption) ([]between, error) {
	places := make([]between, len(list))
	of := map[uint32][]*between{}
	for i := range list {
		places[i] = between{preemption: &list[i], high: ^uint64(0)}
		of[list[i].Thread] = append(of[list[i].Thread], &places[i])
	}
	done := map[uint32]uint64{}
	position := uint64(0)
	for _, turn := range s {
		first := done[turn.Thread]
		done[turn.Thread] += uint64(turn.Events)
		for _, b := range of[turn.Thread] {
			if n := b.preemption.Ordinal; n > first && n-first <= uint64(turn.Events) {
				b.low = position + n - first
			}
			if n := b.preemption.Ordinal; n >= first && n-first < uint64(turn.Events) {
				b.high = position + n - first
			}
		}
		position += uint64(turn.Events)
	}
	type step struct {
		thread  uint32
		ordinal uint64
	}
	last := map[step]uint64{}
	never := map[step]bool{}
	for i := range places {
		b := &places[i]
		if b.low == 0 {
			return nil, fmt.Errorf("record: %v: the thread has %d events", b.preemption, done[b.preemption.Thread])
		}
		// Several preemptions of one step follow each other.
		of := step{b.preemption.Thread, b.preemption.Ordinal}
		b.until = max(min(b.preemption.Until, b.high, position), b.low, last[of])
		last[of] = b.until
		b.never = never[of] || b.preemption.Until == Never && b.high == ^uint64(0)
		never[of] = b.never
	}
	return slices.DeleteFunc(places, func(b between) bool { return b.never }), nil
}

// sortPreemptions sorts the preemptions of each thread in the order of its events.
func sortPreemptions(list []Preemption) []Preemption {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Preemption) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return sorted
}

// preemptionsOf returns the preemptions of a thread in a sorted list.
func preemptionsOf(list []Preemption, thread uint32) []Preemption {
	first, _ := slices.BinarySearchFunc(list, thread, func(p Preemption, t uint32) int { return cmp.Compare(p.Thread, t) })
	last := first
	for last < len(list) && list[last].Thread == thread {
		last++
	}
	return list[first:last]
}
