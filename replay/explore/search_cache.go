package explore

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
)

// signature identifies a divergence by the code in which it happened, not by thread or event:
// another thread that runs the same code diverges in the same way.
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

// who identifies the thread of a step: the diverging one, or one that made its event at this
// site.
type who uint64

const (
	whoSelf  who = 0
	whoOther who = 1
)

// until says when a thread continues: after the event of another thread at a site, or:
type until uint64

const (
	untilLast  until = 1 // right before its next event
	untilFirst until = 2 // at once
	untilAll   until = 3 // each step of the window right before its next
)

func until4(e *logged) until { return until(e.site) }

// shape describes a candidate relative to the divergence.
type shape struct {
	who      who
	back     int // how many steps before
	until    until
	pc, with evidence.Addr
	// exact: the other thread is preempted as well.
	exact bool
}

// cache has the candidates that passed each divergence: Lee et al., section 5.
type cache struct {
	of map[signature][]shape
	// at are the instructions of candidates that passed any divergence. inside counts those
	// that were preemptions at an instruction, whole those right after an event.
	at            map[evidence.Addr]bool
	inside, whole int
}

func newCache() cache { return cache{of: map[signature][]shape{}, at: map[evidence.Addr]bool{}} }

// addSignature notes a shape that helped, and reports whether it was known.
func (c *cache) addSignature(d signature, s shape) bool {
	known := slices.Contains(c.of[d], s)
	if !known {
		c.of[d] = append(c.of[d], s)
	}
	if s.pc != 0 {
		c.at[s.pc] = true
		c.inside++
	} else {
		c.whole++
	}
	return known
}

// insideFirst reports whether preemptions at instructions have helped more often.
func (c *cache) insideFirst() bool { return c.inside > c.whole }

// first moves the candidates that helped before to the front: with the same divergence, then at
// the same instruction.
func (c *cache) first(d signature, list []candidate) []candidate {
	known := c.of[d]
	if len(known) == 0 && len(c.at) == 0 {
		return list
	}
	rank := func(x *candidate) int { return -2*b2i(slices.Contains(known, x.shape)) - b2i(c.at[x.shape.pc]) }
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return cmp.Compare(rank(&a), rank(&b)) })
	return sorted
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
