package ptmalloc

import (
	"diagnose/evidence"
	"diagnose/image"
)

// Heap is the heap of the C library in a dead or stopped process. It is not safe for concurrent use.
type Heap struct {
	// Version is the C library's.
	Version Version
	// Arenas begin with the main one.
	Arenas []*Arena
	// BadLinks are the links of lists that are not as malloc makes them.
	BadLinks []BadLink
	// Cut: there are more free chunks than are read.
	Cut bool
	// Unlisted counts the threads whose lists of free chunks are not known.
	Unlisted int

	process  *image.Process
	mem      image.Memory
	mappings image.Mappings
	cache    *window
	module   *image.Module

	safeLinking bool
	// free has the place of each free chunk, by the address of its header.
	free map[evidence.Addr]Free
	// tcaches are the chunks with the threads' tables of lists.
	tcaches []evidence.Addr
}

// Open reads the arenas and the lists of free chunks of a process. It returns an error if the process has no heap of
// glibc's, or none whose layout is certain.
func Open(p *image.Process) (*Heap, error) {
	m := libc(p)
	if m == nil {
		return nil, errNoHeap
	}
	return openIn(p, p, m, versionOf(m))
}

// openIn reads the heap of the object m.
func openIn(p *image.Process, mem image.Memory, m *image.Module, v Version) (*Heap, error) {
	h := &Heap{Version: v, process: p, mem: mem, mappings: p.Mappings, cache: &window{memory: mem}, module: m}
	base, layout, err := h.findMainArena(h.module)
	if err != nil {
		return nil, err
	}
	if err := h.readArenas(base, layout); err != nil {
		return nil, err
	}
	h.readLists()
	return h, nil
}

// readLists reads the lists of free chunks. Whether links are combined with their addresses follows from the version, or
// from the links.
func (h *Heap) readLists() {
	h.safeLinking = h.Version == 0 || h.Version >= firstSafeLinking
	h.readListsOnce()
	if h.Version != 0 || len(h.BadLinks) == 0 {
		return
	}
	safe := *h
	h.safeLinking = false
	h.readListsOnce()
	if len(h.BadLinks) >= len(safe.BadLinks) {
		*h = safe
	}
}

func (h *Heap) readListsOnce() {
	h.free, h.BadLinks, h.tcaches, h.Cut, h.Unlisted = map[evidence.Addr]Free{}, nil, nil, false, 0
	r := &listReader{Heap: h, budget: mostFree}
	r.findTcaches(h.module)
	for _, a := range h.Arenas {
		r.readFast(a)
		r.readBins(a)
	}
}

// Module is the object that has malloc.
func (h *Heap) Module() *image.Module { return h.module }

// IsTable reports whether a chunk is malloc's own table of a thread's lists.
func (h *Heap) IsTable(c *Chunk) bool {
	for _, at := range h.tcaches {
		if at == c.Addr {
			return true
		}
	}
	return false
}

func (h *Heap) mappingAt(at evidence.Addr) *image.Mapping { return h.process.MappingAt(at) }

// Segments are the pieces of memory of all arenas.
func (h *Heap) Segments() (list []Segment) {
	for _, a := range h.Arenas {
		list = append(list, a.Segments...)
	}
	return list
}

// Arena is the arena that the segment is of.
func (s *Segment) Arena() *Arena { return s.arena }

// Contains reports whether an address is in the segment.
func (s *Segment) Contains(at evidence.Addr) bool { return at >= s.Start && at < s.End }

// window reads memory in pieces, so that neighbouring small reads cost little.
type window struct {
	memory image.Memory
	start  evidence.Addr
	data   []byte
	buffer [windowSize]byte
}

const windowSize = 64 << 10

// ReadMemory implements image.Memory.
func (w *window) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if off := addr - w.start; addr >= w.start && uint64(off) < uint64(len(w.data)) && uint64(off)+uint64(len(p)) <= uint64(len(w.data)) {
		return copy(p, w.data[off:]), nil
	}
	if len(p) > windowSize/2 {
		return w.memory.ReadMemory(addr, p)
	}
	w.start = addr &^ (pageSize - 1)
	n, _ := w.memory.ReadMemory(w.start, w.buffer[:])
	w.data = w.buffer[:n]
	if off := addr - w.start; uint64(off)+uint64(len(p)) <= uint64(n) {
		return copy(p, w.data[off:]), nil
	}
	return w.memory.ReadMemory(addr, p)
}
