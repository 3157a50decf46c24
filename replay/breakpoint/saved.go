package breakpoint

import (
	"encoding/json"
	"errors"
	"maps"

	"diagnose/replay/tracee"
)

// Saved are the places that are looked for in a stopped process. They are the same in a copy of it whose text is the program's own.
type Saved struct {
	threads  map[uint32]savedThread
	placedAt map[placedPC]bool
	// Text has the program's own bytes where the search has changed the text.
	Text []tracee.Words
	// Mapped is the memory that the search has mapped.
	Mapped []tracee.Span
}

type savedThread struct {
	placed bool
	event  uint64
	point  point
}

// ErrRepeats says that a thread executes a part of an instruction that repeats.
var ErrRepeats = errors.New("replay: a thread is in an instruction that repeats")

// Save returns the places. The error is ErrRepeats if the process is at no place where they can be looked for again.
func (b *Breakpoints) Save() (Saved, error) {
	s := Saved{threads: map[uint32]savedThread{}, placedAt: maps.Clone(b.placedAt)}
	for tid, x := range b.threads {
		t := b.process.Threads[tid]
		if t == nil || t.Index == 0 {
			continue
		}
		if x.place != nil && x.place.rest != 0 {
			return Saved{}, ErrRepeats
		}
		if x.place != nil && x.place.probe != nil {
			s.Text = append(s.Text, x.place.probe.replaced...)
			s.Mapped = append(s.Mapped, x.place.probe.pages())
		}
		s.threads[t.Index] = savedThread{x.place != nil, x.event, x.point}
	}
	return s, nil
}

// Adopt looks for places in a copy of the process that they were saved of.
func (b *Breakpoints) Adopt(s Saved) error {
	b.placedAt = maps.Clone(s.placedAt)
	for _, t := range b.process.SortedThreads() {
		x := s.threads[t.Index]
		switch {
		case t.Index == 0:
		case x.placed && x.event != 0:
			if err := b.Arm(t, x.event); err != nil {
				return err
			}
		case x.placed:
			if _, err := b.Last(t); err != nil {
				return err
			}
		}
		if x.point.pc != 0 {
			b.of(t).point = x.point
			if err := b.set(t.TID); err != nil {
				return err
			}
		}
	}
	return nil
}

// savedJSON is Saved in a file. A process that is made from a file has the program's own text.
type savedJSON struct {
	Threads map[uint32]savedThreadJSON
	Placed  []savedPlaceJSON
	Mapped  []tracee.Span
}

type savedThreadJSON struct {
	Placed          bool
	Event, PC, Left uint64
}

type savedPlaceJSON struct {
	Thread uint32
	PC     uint64
}

// MarshalJSON writes all but Text.
func (s *Saved) MarshalJSON() ([]byte, error) {
	x := savedJSON{Threads: map[uint32]savedThreadJSON{}, Mapped: s.Mapped}
	for i, t := range s.threads {
		x.Threads[i] = savedThreadJSON{t.placed, t.event, t.point.pc, t.point.left}
	}
	for at := range s.placedAt {
		x.Placed = append(x.Placed, savedPlaceJSON{at.thread, at.pc})
	}
	return json.Marshal(x)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (s *Saved) UnmarshalJSON(data []byte) error {
	var x savedJSON
	if err := json.Unmarshal(data, &x); err != nil {
		return err
	}
	*s = Saved{threads: map[uint32]savedThread{}, placedAt: map[placedPC]bool{}, Mapped: x.Mapped}
	for i, t := range x.Threads {
		s.threads[i] = savedThread{t.Placed, t.Event, point{t.PC, t.Left}}
	}
	for _, at := range x.Placed {
		s.placedAt[placedPC{at.Thread, at.PC}] = true
	}
	return nil
}
