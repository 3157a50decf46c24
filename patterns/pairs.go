package patterns

import (
	"slices"

	"diagnose/delta"
	"diagnose/evidence"
)

// pairScanner finds two words that one context accesses within a short
// distance, while another context makes conflicting accesses to both in
// between.
type pairScanner struct {
	s      *scanner
	recent []recentCells // by context
	list   []conflict    // of between, reused for each window
}

// recentCells are the words that a context accessed last, in a ring.
type recentCells struct {
	list [recentWords]recentCell
	next int
}

type recentCell struct {
	cell, index int32 // index + 1; 0: none
	wrote       bool
}

const (
	// recentWords is how many of a context's last words are searched for a
	// pair.
	recentWords = 6
	// closeBy is how many events of the thread may be between the accesses of a
	// pair outside of a critical section.
	closeBy = 8
	// smallStruct is the size in bytes up to which the words of one variable
	// count as separate members, and not as elements of an array.
	smallStruct = 128
)

// access is called before the cell is updated.
func (p *pairScanner) access(i, number, context int32, writes bool, now *threadClock) {
	for int(context) >= len(p.recent) {
		p.recent = append(p.recent, recentCells{})
	}
	r := &p.recent[context]
	second := &p.s.state[number]
	since := second.slots[second.slot(context)].last
	if second.other(context) <= since {
		r.note(number, i, writes)
		return
	}
	for j := range r.list {
		e := &r.list[j]
		first := e.index - 1
		if first < 0 || e.cell == number {
			continue
		}
		c := &p.s.state[e.cell]
		// If the second word was accessed since, it is a pattern of that word
		// alone.
		if since < first && c.other(context) > first && p.together(first, i) {
			p.between(&window{c, second, first, i, since, context, e.wrote, writes}, now)
		}
	}
	r.note(number, i, writes)
}

func (r *recentCells) note(cell, i int32, wrote bool) {
	for j := range r.list {
		if e := &r.list[j]; e.index > 0 && e.cell == cell {
			e.index, e.wrote = i+1, wrote
			return
		}
	}
	r.list[r.next] = recentCell{cell, i + 1, wrote}
	r.next = (r.next + 1) % recentWords
}

// together reports whether two accesses of one context belong together: they
// are within few events, or in one critical section.
func (p *pairScanner) together(first, last int32) bool {
	a, b := &p.s.accesses[first], &p.s.accesses[last]
	if a.Variable == b.Variable && p.s.run.Log.Variables[a.Variable].Size > smallStruct {
		return false
	}
	return b.Ordinal-a.Ordinal <= closeBy || sameSection(locksOf(p.s.run, a), locksOf(p.s.run, b)) != nil
}

// window is two accesses of one context, to two words.
type window struct {
	one, two    *cell
	first, last int32
	// since is the context's access to the second word before last; -1: none.
	since, context         int32
	wroteFirst, writesLast bool
}

// between searches for a context that accesses first's word after first, and last's
// word before last: neither serial order gives that.
func (p *pairScanner) between(w *window, now *threadClock) {
	p.list = w.one.conflicts(p.list[:0], w.first, w.context, w.wroteFirst)
	for _, b := range p.list {
		c := w.two.conflictOf(w.one.slots[b.slot].context, w.since, w.writesLast)
		if c < 0 || !p.together(min(b.index, c), max(b.index, c)) || handlerCannot(&p.s.accesses[w.first], &p.s.accesses[b.index]) {
			continue
		}
		p.emit(w, b, c, now)
	}
}

func (p *pairScanner) emit(w *window, b conflict, c int32, now *threadClock) {
	s := p.s
	first, last := &s.accesses[w.first], &s.accesses[w.last]
	ordered := s.before(&s.accesses[c], last, nowOf(now)) && s.before(first, &s.accesses[b.index], b.clock)
	k := key{
		shape: shapePair, variable: s.run.Variable[first.Variable], second: s.run.Variable[last.Variable],
		places: [4]delta.Place{s.run.Place(first), s.run.Place(&s.accesses[b.index]), s.run.Place(&s.accesses[c]), s.run.Place(last)},
	}
	if c < b.index {
		// The other context's pair also encloses this one's: the two patterns
		// are equivalent.
		other := key{
			shape: shapePair, variable: k.second, second: k.variable,
			places: [4]delta.Place{k.places[2], k.places[3], k.places[0], k.places[1]},
		}
		if other.less(&k) {
			k = other
		}
	}
	accesses := [4]int32{w.first, b.index, c, w.last}
	slices.Sort(accesses[:])
	s.emit(k, ordered, accesses)
}

type conflict struct {
	slot, index int32
	clock       clock
}

// conflicts appends to an empty list the other contexts' later accesses that
// conflict with an access.
func (c *cell) conflicts(list []conflict, behind, context int32, wrote bool) []conflict {
	if c.write > behind && c.slots[c.writer].context != context {
		list = append(list, conflict{c.writer, c.write, c.writeClock})
	}
	if !wrote {
		return list
	}
	for _, r := range c.readers {
		if s := &c.slots[r]; s.read > behind && s.context != context && len(list) < mostSeen {
			list = append(list, conflict{r, s.read, s.readClock})
		}
	}
	return list
}

// conflictOf returns a context's access after another one that conflicts with
// the current access; -1: none.
func (c *cell) conflictOf(context, behind int32, writes bool) int32 {
	if c.write > behind && c.slots[c.writer].context == context {
		return c.write
	}
	if writes {
		for _, r := range c.readers {
			if s := &c.slots[r]; s.context == context && s.read > behind {
				return s.read
			}
		}
	}
	return -1
}

// sameSection returns a lock that is in both sets by the same acquisition.
func sameSection(a, b []evidence.Lock) *evidence.Lock {
	for i := range a {
		for j := range b {
			if a[i].Address == b[j].Address && a[i].Taken == b[j].Taken {
				return &a[i]
			}
		}
	}
	return nil
}
