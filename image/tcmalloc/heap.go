package tcmalloc

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// Heap is tcmalloc's heap in a dead or stopped process. It is not safe for concurrent use.
type Heap struct {
	memory  image.Memory
	module  *image.Module
	classes []class
	central evidence.Addr
	pages   pageMap
	caches  []*cache
	// complete: all threads' caches were found.
	complete bool
	// read has the free objects of the classes that were asked for.
	read map[int]*contents
}

// Open finds the heap of tcmalloc in a process. It returns an error if there is none, there are several,
// or the layout is not one that is known.
func Open(p *image.Process) (*Heap, error) {
	h, err := allocator.Find(p, "tcmalloc", rootBytes, func(m *image.Module, regions []allocator.Region) *Heap {
		if h := (&Heap{memory: p, module: m}); h.find(regions) && !debugging(m) {
			return h
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.assign(p)
	return h, nil
}

// find finds the structures in the data of a module.
func (h *Heap) find(regions []allocator.Region) bool {
	h.read = map[int]*contents{}
	var ok bool
	if h.classes, ok = findClasses(regions); !ok {
		return false
	}
	if h.central, ok = findCentral(regions, len(h.classes)); !ok || !h.findMap(regions) {
		return false
	}
	h.complete = h.findCaches(regions)
	return true
}

// Name implements allocator.Heap.
func (h *Heap) Name() evidence.Allocator { return evidence.Tcmalloc }

// Module implements allocator.Heap.
func (h *Heap) Module() *image.Module { return h.module }

// At implements allocator.Heap.
func (h *Heap) At(at evidence.Addr) (allocator.Object, bool) {
	o := allocator.Object{Thread: -1}
	if !at.Canonical() {
		return o, false
	}
	s, err := h.pages.spanAt(uint64(at) >> pageShift)
	if err != nil {
		return o, false
	}
	o.Start, o.Size, o.State = s.base(), s.length<<pageShift, evidence.ChunkInUse
	switch {
	case s.free:
		o.State, o.List, o.Pages = evidence.ChunkFree, evidence.ListPages, true
		return o, true
	case s.class == 0:
		return o, true
	case s.class >= len(h.classes) || s.length != h.classes[s.class].pages:
		return o, false // while tcmalloc works on it
	}
	c := &h.classes[s.class]
	index := uint64(at-s.base()) / c.size
	if index >= c.capacity() {
		return o, false
	}
	o.Start, o.Size, o.Linked = s.base()+evidence.Addr(index*c.size), c.size, true
	list := h.contentsOf(s.class)
	if p, ok := list.free[o.Start]; ok {
		o.State, o.List, o.Thread, o.Linked = evidence.ChunkFree, p.list, p.thread, p.linked
	} else if !list.whole {
		o.State = evidence.ChunkUnknown
	}
	return o, true
}
