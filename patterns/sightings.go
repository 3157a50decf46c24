package patterns

import "iter"

// mostKeys bounds the patterns kept of one run. A run of a real program has a
// few thousand; one with more has places that access everything.
const mostKeys = 1 << 16

// sighting is the occurrence of a key in a run.
type sighting struct {
	// last is the latest occurrence that the program did not order itself; if
	// it ordered all, the latest.
	last [4]int32
	free bool // there is an occurrence that it did not order
	// recurs: there are several that it did not order.
	recurs bool
}

// sightings are the patterns of a run, at least the last mostKeys of them: those
// next to the failure explain it. They are two generations; the older one is
// forgotten when the younger one is full.
type sightings struct {
	young, old generation
	// forgotten counts the dropped patterns; one that was added and dropped
	// again counts twice.
	forgotten int
}

// generation keeps its memory when it is emptied: a run may fill hundreds.
type generation struct {
	index map[key]int32
	list  []sighting
}

func newSightings() sightings {
	return sightings{young: generation{index: map[key]int32{}}, old: generation{index: map[key]int32{}}}
}

// note returns the sighting of a key, which is added if it is new. It may be
// changed until the next call.
func (s *sightings) note(k key) *sighting {
	if n, ok := s.young.index[k]; ok {
		return &s.young.list[n]
	}
	var seen sighting
	if n, ok := s.old.index[k]; ok {
		seen = s.old.list[n]
		delete(s.old.index, k)
	}
	if len(s.young.list) == mostKeys {
		s.forgotten += len(s.old.index)
		clear(s.old.index)
		s.old.list = s.old.list[:0]
		s.young, s.old = s.old, s.young
	}
	s.young.index[k] = int32(len(s.young.list))
	s.young.list = append(s.young.list, seen)
	return &s.young.list[len(s.young.list)-1]
}

// sightingOf returns the sighting of a key; nil: none.
func (s *sightings) sightingOf(k key) *sighting {
	for _, g := range []*generation{&s.young, &s.old} {
		if n, ok := g.index[k]; ok {
			return &g.list[n]
		}
	}
	return nil
}

// all returns the patterns in any order.
func (s *sightings) all() iter.Seq2[key, *sighting] {
	return func(yield func(key, *sighting) bool) {
		for _, g := range []*generation{&s.young, &s.old} {
			for k, n := range g.index {
				if !yield(k, &g.list[n]) {
					return
				}
			}
		}
	}
}

func (s *sightings) len() int { return len(s.young.index) + len(s.old.index) }
