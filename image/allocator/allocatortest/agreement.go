package allocatortest

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/image/allocator"
)

// Agreement counts what a reader said of objects whose state is known.
type Agreement struct {
	// Live and Freed are the objects that were asked for, Told those whose state was told, and Wrong
	// those that were told wrongly.
	Live, Freed, Told, Wrong int
	// Lists counts the freed ones by place.
	Lists map[evidence.FreeList]int
	// Pages counts the freed ones of which only free pages are left, Recut those whose memory was cut
	// into objects of another size since, all of which are free.
	Pages, Recut int
}

// piece is memory that was an object.
type piece struct {
	start, end evidence.Addr
	size       uint64
	live       bool
}

// Compare asks a heap for the objects of a list of events, at their starts and inside. Of a freed object
// whose memory another object has now, nothing is asked.
func Compare(t *testing.T, h allocator.Heap, events []Event) Agreement {
	t.Helper()
	a := Agreement{Lists: map[evidence.FreeList]int{}}
	for _, p := range last(events) {
		if p.live {
			a.Live++
		} else {
			a.Freed++
		}
		for _, at := range []evidence.Addr{p.start, p.start + evidence.Addr(p.size/2), p.end - 1} {
			a.ask(t, h, &p, at)
		}
	}
	return a
}

// ask asks for one address. The object counts as told if it is told for its start.
func (a *Agreement) ask(t *testing.T, h allocator.Heap, p *piece, at evidence.Addr) {
	o, found := h.At(at)
	if !found || o.State == evidence.ChunkUnknown {
		if at == p.start {
			t.Logf("%v of %+v: not told", at, p)
		}
		return
	}
	same := o.Start == p.start && o.Size == p.size
	if (o.State == evidence.ChunkInUse) != p.live || p.live && !same || at < o.Start || at >= o.End() {
		a.Wrong++
		t.Errorf("%v of %+v: %+v", at, p, o)
		return
	}
	if at != p.start {
		return
	}
	a.Told++
	if !p.live {
		a.Lists[o.List]++
		switch {
		case o.Pages:
			a.Pages++
		case !same:
			a.Recut++
		}
	}
}

// last are the objects in use and those freed ones whose memory no later object has, in the order of address.
func last(events []Event) []piece {
	var list []piece
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if e.Size == 0 {
			continue
		}
		p := piece{start: e.At, end: e.At + evidence.Addr(e.Size), size: e.Size, live: true}
		for _, later := range events[i+1:] {
			if later.At == e.At {
				p.live = false
				break
			}
		}
		at, _ := slices.BinarySearchFunc(list, p.start, func(x piece, start evidence.Addr) int {
			if x.end <= start {
				return -1
			}
			return 1
		})
		if at == len(list) || list[at].start >= p.end {
			list = slices.Insert(list, at, p)
		}
	}
	return list
}
