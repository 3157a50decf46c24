package unwind

import (
	"diagnose/evidence"
	"diagnose/image"
)

// EndsOptions says how much of a deep stack WalkEnds keeps.
type EndsOptions struct {
	// Limit bounds the frames walked, Top and Bottom the innermost and
	// outermost ones kept.
	Limit, Top, Bottom int
}

// Cycle is a recursion: a repeating sequence of pcs.
type Cycle struct {
	// First is the index of its first frame, Period the frames of one turn.
	First, Period int
	// Turns counts the complete, identical turns in sequence.
	Turns int
	// PCs are those of the innermost turn, innermost first.
	PCs []evidence.Addr
}

const (
	// maxPeriod bounds the frames in one turn of a recursion, maxLeaf the
	// frames above it: the functions that the recursion called last.
	maxPeriod = 256
	maxLeaf   = 128
	// minTurns is how often a sequence must repeat to be called a recursion.
	minTurns = 3
)

// WalkEnds walks a stack that may be a million frames deep and keeps its two
// ends. The memory it takes is that of the frames kept and 8 bytes for every
// frame walked.
func (u *Unwinder) WalkEnds(t *image.Thread, o EndsOptions) Stack {
	var s Stack
	var pcs []evidence.Addr
	var ring []Frame // the last Bottom frames after the top, oldest at next
	next := 0
	end := u.walkFunc(t, o.Limit, func(f *Frame) bool {
		pcs = append(pcs, f.PC())
		switch {
		case len(s.Frames) < o.Top:
			s.Frames = append(s.Frames, *f)
		case len(ring) < o.Bottom:
			ring = append(ring, *f)
		case o.Bottom > 0:
			ring[next] = *f
			next = (next + 1) % o.Bottom
		}
		return true
	})
	s.Stopped, s.Truncated, s.Depth = end.stopped, end.truncated, end.depth
	if s.Omitted = s.Depth - len(s.Frames) - len(ring); s.Omitted > 0 {
		s.OmittedAt = len(s.Frames)
	}
	s.Frames = append(append(s.Frames, ring[next:]...), ring[:next]...)
	s.Cycle = findCycle(pcs)
	return s
}

// findCycle finds the recursion near the top of the stack that covers the
// most frames; nil when nothing repeats often enough. A recursion whose turns
// differ (a parser's) has no such sequence.
func findCycle(pcs []evidence.Addr) *Cycle {
	var best *Cycle
	covered := 0
	for first := 0; first < min(maxLeaf, len(pcs)); first++ {
		if covered > (len(pcs)-first)/2 {
			break // no other one covers more
		}
		for period := 1; period <= maxPeriod && first+period < len(pcs); period++ {
			if pcs[first+period] != pcs[first] {
				continue
			}
			turns := countTurns(pcs[first:], period)
			if turns >= minTurns && turns*period > covered {
				covered = turns * period
				best = &Cycle{First: first, Period: period, Turns: turns}
				break // a multiple of the period covers no more
			}
		}
	}
	if best != nil {
		best.PCs = append(best.PCs, pcs[best.First:best.First+best.Period]...)
	}
	return best
}

// countTurns counts how often the first period elements repeat.
func countTurns(pcs []evidence.Addr, period int) int {
	n := period
	for n < len(pcs) && pcs[n] == pcs[n-period] {
		n++
	}
	return n / period
}
