package patterns

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// clock holds for each thread, by its column, the last event that is known to
// have happened before. It does not change once it is shared.
type clock []uint64

// clocks are the vector clocks of all threads (Fidge 1988, Mattern 1989),
// advanced along the log.
type clocks struct {
	edges     []evidence.OrderEdge
	threads   map[uint32]*threadClock
	snapshots []clock // by edge: the releasing thread's, until it is acquired
	released  []bool
}

type threadClock struct {
	column int32 // -1: it has no accesses, so its clock is not needed
	points []point
	next   int
	now    clock
	shared bool // now is shared
	busy   bool // its advance waits for another thread's
}

// point is an event at which a thread releases or acquires an edge.
type point struct {
	ordinal uint64
	edge    int32
	acquire bool
}

// mostClocks bounds the threads with clocks: the length of each clock is the
// number of threads.
const mostClocks = 4096

// newClocks makes the clocks of a log; false: it has too many threads.
func newClocks(log *evidence.AccessLog) (*clocks, bool) {
	c := &clocks{threads: map[uint32]*threadClock{}}
	columns := int32(0)
	var last *threadClock
	lastThread := uint32(0)
	for i := range log.Accesses {
		if thread := log.Accesses[i].Thread; last == nil || thread != lastThread {
			last, lastThread = c.thread(thread), thread
			if last.column < 0 {
				last.column = columns
				columns++
			}
		}
	}
	for _, e := range log.Order {
		if !e.Lock && e.From != e.To {
			c.edges = append(c.edges, e)
		}
	}
	for i, e := range c.edges {
		from, to := c.thread(e.From), c.thread(e.To)
		from.points = append(from.points, point{e.FromOrdinal, int32(i), false})
		to.points = append(to.points, point{e.ToOrdinal, int32(i), true})
	}
	if len(c.threads) > mostClocks {
		return nil, false
	}
	c.snapshots, c.released = make([]clock, len(c.edges)), make([]bool, len(c.edges))
	for _, t := range c.threads {
		// At one event, releases come before acquisitions: each of two threads
		// at a barrier is ordered after all that the other did before it.
		slices.SortFunc(t.points, func(a, b point) int {
			return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(bit(a.acquire), bit(b.acquire)), cmp.Compare(a.edge, b.edge))
		})
	}
	return c, true
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *clocks) thread(n uint32) *threadClock {
	t := c.threads[n]
	if t == nil {
		t = &threadClock{column: -1}
		c.threads[n] = t
	}
	return t
}

// advance moves a thread past its events up to ordinal. It leaves out an edge
// that is impossible because it would precede itself.
func (c *clocks) advance(t *threadClock, ordinal uint64) {
	if t.busy {
		return
	}
	t.busy = true
	for t.next < len(t.points) && t.points[t.next].ordinal <= ordinal {
		p := t.points[t.next]
		t.next++
		if !p.acquire {
			c.snapshots[p.edge], c.released[p.edge], t.shared = t.now, true, true
			continue
		}
		e := &c.edges[p.edge]
		from := c.threads[e.From]
		if !c.released[p.edge] {
			c.advance(from, e.FromOrdinal)
		}
		if c.released[p.edge] {
			t.join(c.snapshots[p.edge], from.column, e.FromOrdinal)
			c.snapshots[p.edge] = nil
		}
	}
	t.busy = false
}

// join merges the clock of another thread at one of its events.
func (t *threadClock) join(other clock, column int32, ordinal uint64) {
	news := column >= 0 && t.now.timeOf(column) < ordinal
	for i, v := range other {
		news = news || t.now.timeOf(int32(i)) < v
	}
	if !news {
		return
	}
	size := max(len(t.now), len(other), int(column)+1)
	if t.shared || size > len(t.now) {
		next := make(clock, size)
		copy(next, t.now)
		t.now, t.shared = next, false
	}
	for i, v := range other {
		t.now[i] = max(t.now[i], v)
	}
	if column >= 0 {
		t.now[column] = max(t.now[column], ordinal)
	}
}

func (c clock) timeOf(column int32) uint64 {
	if int(column) >= len(c) {
		return 0
	}
	return c[column]
}

// share returns the thread's clock, which the caller may keep.
func (t *threadClock) share() clock {
	t.shared = true
	return t.now
}
