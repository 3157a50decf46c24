package agent

import (
	"encoding/binary"
	"fmt"
	"sync"

	"diagnose/evidence"
)

// Freed is an entry of a quarantine: a small object, and who freed it.
type Freed struct {
	Object evidence.Addr
	By     Call
}

// run is a part of a ring's storage.
type run struct {
	addr uint64
	n    int
}

// entriesPerRun is how many entries are read at once.
const entriesPerRun = 4096

// Quarantine hands the entries of all heaps' rings to visit, so many workers
// (Workers) at once, and says which one it is. The slice is valid during the
// visit only. An error of visit is counted and does not end the walk.
//
// Freed large objects are not among them: their spans say all of it.
func (h *Heap) Quarantine(workers int, visit func(worker int, entries []Freed) error) Gaps {
	var patience patience
	return parallel(workers, h.eachRing, func(worker int) func(run) error {
		raw, entries := make([]byte, entriesPerRun*freedSize), make([]Freed, entriesPerRun)
		return func(r run) error {
			p := raw[:r.n*freedSize]
			if err := patience.read(h.source, "entries of a quarantine", r.addr, p); err != nil {
				return err
			}
			for i := range r.n {
				e := p[i*freedSize:]
				entries[i] = Freed{evidence.Addr(binary.LittleEndian.Uint64(e)),
					Call{binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])}}
			}
			return visit(worker, entries[:r.n])
		}
	})
}

// eachRing splits the rings of all heaps. Rings have storage of their own, so
// all together cannot have more entries than the metadata has room for.
func (h *Heap) eachRing(runs chan<- run) Gaps {
	room := h.root.Meta.Mapped / freedSize
	return h.eachHeap(func(i uint64, raw *RawHeap, gaps *Gaps) {
		for class := range raw.Bins {
			r := &raw.Bins[class].Ring
			n := uint64(r.Tail - r.Head)
			if r.Entries == 0 || n == 0 {
				continue
			}
			capacity := uint64(r.Mask) + 1
			if n > capacity || capacity&uint64(r.Mask) != 0 || capacity > room || !h.root.inMeta(r.Entries, capacity*freedSize) {
				gaps.Add(fmt.Errorf("agent: heap %d, class %d: implausible ring of %d entries at %#x, %d used", i, class, capacity, r.Entries, n))
				continue
			}
			room -= capacity
			r.split(runs)
		}
	})
}

// split makes the runs of a ring's entries, oldest first.
func (r *RawRing) split(runs chan<- run) {
	for at := r.Head; at != r.Tail; {
		slot := at & r.Mask
		n := min(r.Tail-at, r.Mask+1-slot, entriesPerRun)
		runs <- run{r.Entries + uint64(slot)*freedSize, int(n)}
		at += n
	}
}

// Frees sets Freed of the small objects among objects that are in quarantine,
// in one pass over the rings, and leaves the others as they are.
func (h *Heap) Frees(workers int, objects ...*Object) Gaps {
	wanted := map[evidence.Addr][]*Object{}
	for _, o := range objects {
		if o.State == Quarantined && !o.Large {
			wanted[o.Addr] = append(wanted[o.Addr], o)
		}
	}
	if len(wanted) == 0 {
		return Gaps{}
	}
	var mu sync.Mutex
	return h.Quarantine(workers, func(_ int, entries []Freed) error {
		for _, e := range entries {
			if list, ok := wanted[e.Object]; ok {
				mu.Lock()
				for _, o := range list {
					o.Freed = e.By
				}
				mu.Unlock()
			}
		}
		return nil
	})
}
