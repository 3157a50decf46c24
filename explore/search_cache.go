package explore

import (
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
)

// signature tells a divergence by the code that it happened in, and not by thread
// or event: another thread that runs the same code diverges alike.
type signature struct {
	reason        string
	expected, got evidence.Addr
}

func signatureOf(d *replay.DivergenceError) signature {
	s := signature{reason: string(d.Reason), got: d.PC}
	if d.Expected != nil {
		s.expected = d.Expected.Site
	}
	if d.Got != nil {
		s.got = d.Got.Site
	}
	return s
}

// who is the thread of a step: the diverging one, or one that made its event at this
// site.
type who uint64

const (
	whoSelf  who = 0
	whoOther who = 1
)

// until says when a thread goes on: behind another's event that was made at a
// site, or:
type until uint64

const (
	untilLast  until = 1 // right before its next event
	untilFirst until = 2 // at once
	untilAll   until = 3 // each step of the window right before its next
)

func until4(e *logged) until { return until(e.site) }

// shape is what a candidate is, relative to the divergence.
type shape struct {
	who      who
	back     int // how many steps before
	until    until
	pc, with evidence.Addr
	// exact: the other thread is preempted as well.
	exact bool
}

// cache has what got over which divergence: Lee et al., section 5.
type cache map[signature][]shape

// add notes what helped, and reports whether it was known.
func (c cache) add(d signature, s shape) bool {
	known := slices.Contains(c[d], s)
	if !known {
		c[d] = append(c[d], s)
	}
	return known
}

// first puts what helped before in front.
func (c cache) first(d signature, list []candidate) []candidate {
	known := c[d]
	if len(known) == 0 {
		return list
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b candidate) int {
		return b2i(slices.Contains(known, b.shape)) - b2i(slices.Contains(known, a.shape))
	})
	return sorted
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
