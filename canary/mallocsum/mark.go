package mallocsum

import (
	"diagnose/evidence"
	"diagnose/image"
)

// reach says how an object was reached from the roots.
type reach uint8

const (
	unreached reach = iota
	// inner: each chain of pointers to it has one to the middle of an object. LeakSanitizer counts it as reachable (lsan_common.cpp, PointsIntoChunk),
	// memcheck as possibly lost (mc_leakcheck.c).
	inner
	// exact: over pointers to the starts of objects alone.
	exact
)

// mostHeld bounds the pointers outside of the heap that are kept for the types that they tell.
const mostHeld = 1 << 20

// pointer is a word of memory that has the address of an object.
type pointer struct{ at, to evidence.Addr }

// marker finds the objects that chains of pointers lead to.
type marker struct {
	*searcher
	// queue are objects whose memory is still to be searched, later those that were reached over a pointer to their middle.
	queue, later []uint32
	// held are pointers in memory outside of the heap.
	held []pointer
}

// mark marks all objects that can be reached from memory outside of the heap and from registers.
func (m *marker) mark(p *image.Process, r *roots) {
	for _, list := range [][]span{r.data, r.other} {
		for _, x := range list {
			m.search(x, func(at, word evidence.Addr) {
				if m.reached(at, word) && len(m.held) < mostHeld {
					m.held = append(m.held, pointer{at, word})
				}
			})
		}
	}
	for i := range p.Threads {
		t := &p.Threads[i]
		for _, v := range t.Registers.General() {
			m.reached(0, evidence.Addr(v.Value))
		}
		if to := threadVector(p, t); to != 0 {
			m.reached(t.Registers.FSBase+tcbVector, to)
		}
	}
	m.follow()
	for len(m.later) > 0 {
		i := m.later[len(m.later)-1]
		m.later = m.later[:len(m.later)-1]
		if m.table.objects[i].reach == inner {
			m.search(m.spanOf(i), m.reachedOver)
		}
	}
}

// follow searches the objects of the queue, and those that they lead to.
func (m *marker) follow() {
	for len(m.queue) > 0 {
		i := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		m.search(m.spanOf(i), func(at, word evidence.Addr) { m.reached(at, word) })
	}
}

func (m *marker) spanOf(i uint32) span {
	o := &m.table.objects[i]
	return span{o.start, o.start + evidence.Addr(o.size)}
}

// reached notes a pointer from memory that was reached over the starts of objects. It reports whether it leads to an object.
func (m *marker) reached(at, word evidence.Addr) bool {
	i := m.table.at(word)
	if i < 0 {
		return false
	}
	switch o := &m.table.objects[i]; {
	case o.reach == exact:
	case word == o.start:
		o.reach, o.from = exact, at
		m.queue = append(m.queue, uint32(i))
	case o.reach == unreached:
		o.reach, o.from = inner, at
		m.later = append(m.later, uint32(i))
	}
	return true
}

// reachedOver notes a pointer from an object that was reached over a pointer to the middle of one.
func (m *marker) reachedOver(at, word evidence.Addr) {
	i := m.table.at(word)
	if i < 0 {
		return
	}
	if o := &m.table.objects[i]; o.reach == unreached {
		o.reach, o.from = inner, at
		m.later = append(m.later, uint32(i))
	}
}

// The dynamic thread vector: the control block has the address of its second entry (glibc, sysdeps/x86_64/nptl/tls.h).
const (
	tcbVector   = 8
	vectorEntry = 16
)

// threadVector is the memory that was allocated for a thread's dynamic thread vector; 0: it is not known.
func threadVector(p *image.Process, t *image.Thread) evidence.Addr {
	if t.Registers.FSBase == 0 {
		return 0
	}
	at, err := image.Uint64(p, t.Registers.FSBase+tcbVector)
	if err != nil || at < vectorEntry {
		return 0
	}
	return evidence.Addr(at - vectorEntry)
}
