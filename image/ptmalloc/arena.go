package ptmalloc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// The layout of struct malloc_state that all versions share.
const (
	word      = 8
	fastBins  = 10 // NFASTBINS
	fastSize  = fastBins * word
	binCount  = 127 // the bins with a head: 1, the unsorted one, to NBINS-1
	binsSize  = binCount * 2 * word
	binmap    = 4 * 4
	smallBins = 64 // NSMALLBINS
	// leastEmpty is how many bins have to be empty for a place to be taken for an arena's
	// bins. The bins of the largest chunks nearly always are.
	leastEmpty = 16
	// mostData bounds the data of the C library that is searched.
	mostData = 16 << 20
	// mostArenas bounds the list of arenas.
	mostArenas = 4096
	heapSize   = 64 << 20 // HEAP_MAX_SIZE
	pageSize   = 4096
)

// topOffsets are the offsets of the top, before which are the fast bins: glibc 2.27 put a flag before those, and 2.43
// has none.
var topOffsets = []evidence.Addr{16 + fastSize, 8 + fastSize, 8}

// Arena is a part of the heap with lists of free chunks of its own.
type Arena struct {
	// Addr is that of its malloc_state. Main is the arena whose memory is the program
	// break's.
	Addr evidence.Addr
	Main bool
	// Locked: a thread held the arena's lock.
	Locked bool
	// Top is the chunk at the end, from which new ones are cut. SystemMemory is what the
	// arena has from the kernel, in bytes.
	Top          evidence.Addr
	SystemMemory uint64
	// Segments are the pieces of memory that its chunks are in, in the order of address.
	Segments []Segment

	fast [fastBins]evidence.Addr
	bins evidence.Addr // the address of the first bin's links
}

// ListsEnd is the end of the heads of the arena's lists and of its top, which are from Addr on. They have addresses of chunks, which are within the memory
// of the objects before these.
func (a *Arena) ListsEnd() evidence.Addr { return a.bins + binsSize }

// Segment is a contiguous piece of memory, filled with chunks.
type Segment struct {
	// Start is the first chunk, End the end of the last one.
	Start, End evidence.Addr
	arena      *Arena
}

// errNoHeap is for a process in which malloc was never called.
var errNoHeap = errors.New("the C library's heap was not found")

// stateLayout is a version of struct malloc_state, by offsets.
// fast is 0 where there are no fast bins.
type stateLayout struct{ fast, top, bins, next, system evidence.Addr }

// layoutOf completes the layout with the top at an offset; counted has the
// number of attached threads, since glibc 2.23.
func layoutOf(top evidence.Addr, counted bool) stateLayout {
	l := stateLayout{top: top}
	if top > fastSize {
		l.fast = top - fastSize
	}
	l.bins = l.top + 2*word
	l.next = l.bins + binsSize + binmap
	l.system = l.next + 2*word
	if counted {
		l.system += word
	}
	return l
}

// findMainArena searches the data of the C library for the main arena: its bins' links point to the
// bins themselves where they are empty, and the list of arenas leads back to it.
func (h *Heap) findMainArena(m *image.Module) (evidence.Addr, stateLayout, error) {
	var at evidence.Addr
	var layout stateLayout
	found := 0
	for i := range h.mappings {
		r := &h.mappings[i]
		if !r.Writable() || r.End-r.Start > mostData || h.process.ModuleAt(r.Start) != m {
			continue
		}
		data := make([]byte, r.End-r.Start)
		n, _ := h.mem.ReadMemory(r.Start, data)
		for _, a := range candidates(data[:n], r.Start) {
			for _, top := range topOffsets {
				l := layoutOf(top, true)
				if base := a - l.bins; h.leadsBack(base, l) {
					found++
					at, layout = base, h.withSystemMemory(base, l)
				}
			}
		}
	}
	switch found {
	case 0:
		return 0, layout, errNoHeap
	case 1:
		return at, layout, nil
	}
	return 0, layout, fmt.Errorf("%d places look like the main arena of the C library's heap", found)
}

// candidates are the addresses at which an arena's bins can be.
func candidates(data []byte, start evidence.Addr) (list []evidence.Addr) {
	words := len(data) / word
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(data[i*word:]) }
	self := func(i int) bool {
		own := uint64(start) + uint64(i*word) - 2*word
		return at(i) == own && at(i+1) == own
	}
	// before[i] counts the empty bins at i, i-2, i-4 and so on.
	before := make([]int, words+2)
	for i := 0; i+1 < words; i++ {
		before[i+2] = before[i]
		if self(i) {
			before[i+2]++
		}
	}
	const span = 2 * binCount
	for i := 0; i+span <= words; i++ {
		// The last bin is never used.
		if before[i+span]-before[i] >= leastEmpty && self(i+span-2) && !zeroLink(at, i) {
			list = append(list, start+evidence.Addr(i*word))
		}
	}
	return list
}

func zeroLink(at func(int) uint64, first int) bool {
	for i := first; i < first+2*binCount; i++ {
		if at(i) == 0 {
			return true
		}
	}
	return false
}

// leadsBack reports whether the list of arenas leads from base through arenas of heaps back to base.
func (h *Heap) leadsBack(base evidence.Addr, l stateLayout) bool {
	at := base
	for range mostArenas {
		next, err := image.Uint64(h.mem, at+l.next)
		if err != nil {
			return false
		}
		at = evidence.Addr(next)
		if at == base {
			return true
		}
		if info, ok := h.heapInfo(at &^ (heapSize - 1)); !ok || info.arena != at {
			return false
		}
	}
	return false
}

// withSystemMemory settles whether the state counts the attached threads: the memory
// of the system is a number of pages, and not more than the most that there ever was.
func (h *Heap) withSystemMemory(base evidence.Addr, l stateLayout) stateLayout {
	if h.Version >= 23 {
		return l
	}
	old := layoutOf(l.top, false)
	size, err := image.Uint64(h.mem, base+old.system)
	most, errMost := image.Uint64(h.mem, base+old.system+word)
	if err == nil && errMost == nil && size > 0 && size%pageSize == 0 && size <= most {
		return old
	}
	return l
}

// heapInfo is struct heap_info, at the start of each heap of an arena other than the main one.
type heapInfo struct {
	arena, previous evidence.Addr
	size            uint64
}

func (h *Heap) heapInfo(at evidence.Addr) (heapInfo, bool) {
	raw, err := image.Struct[[4]uint64](h.mem, at)
	if err != nil || at == 0 {
		return heapInfo{}, false
	}
	info := heapInfo{evidence.Addr(raw[0]), evidence.Addr(raw[1]), raw[2]}
	ok := info.arena != 0 && info.arena%word == 0 && info.previous%heapSize == 0 && info.size > 0 && info.size <= raw[3] && raw[3] <= heapSize
	return info, ok
}

// readArena reads the state at an address.
func (h *Heap) readArena(at evidence.Addr, l stateLayout, main bool) (*Arena, error) {
	data := make([]byte, l.system+2*word)
	if _, err := h.mem.ReadMemory(at, data); err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	le := binary.LittleEndian
	a := &Arena{Addr: at, Main: main, Locked: le.Uint32(data) != 0, bins: at + l.bins,
		Top: evidence.Addr(le.Uint64(data[l.top:])), SystemMemory: le.Uint64(data[l.system:])}
	for i := 0; l.fast != 0 && i < fastBins; i++ {
		a.fast[i] = evidence.Addr(le.Uint64(data[int(l.fast)+i*word:]))
	}
	return a, nil
}

// readArenas reads the main arena and those that its list leads to.
func (h *Heap) readArenas(base evidence.Addr, l stateLayout) error {
	at := base
	for range mostArenas {
		a, err := h.readArena(at, l, at == base)
		if err != nil {
			return err
		}
		if a.Main {
			h.mainSegments(a)
		} else {
			h.heapSegments(a, l)
		}
		h.Arenas = append(h.Arenas, a)
		next, err := image.Uint64(h.mem, at+l.next)
		if err != nil {
			return fmt.Errorf("arena: %w", err)
		}
		if at = evidence.Addr(next); at == base {
			break
		}
	}
	return nil
}
