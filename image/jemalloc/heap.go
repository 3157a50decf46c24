package jemalloc

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// Heap is jemalloc's heap in a dead or stopped process.
type Heap struct {
	memory  image.Memory
	module  *image.Module
	classes classes
	tree    tree
	// blocks are the threads' copies of the module's thread-local memory; nil: it cannot be read.
	blocks []*allocator.Region
	// cached has the index of the thread whose cache has an object, by the object's address; -1: it is
	// no thread's, or the thread is not known.
	cached map[evidence.Addr]int
	// own are the objects with the stacks of the caches (tcache_slow_s.dyn_alloc).
	own map[evidence.Addr]bool
	// incomplete: not all caches were read.
	incomplete bool
}

// leastData is how much data a module with jemalloc has: the root of the tree.
const leastData = leafBytes

// Open finds the heap of jemalloc in a process. It returns an error if there is none, there are several,
// or the layout is not one that is known.
func Open(p *image.Process) (*Heap, error) {
	writable := func(start evidence.Addr, size uint64) bool { return allocator.WritableAt(p, start, size) }
	h, err := allocator.Find(p, "jemalloc", leastData, func(m *image.Module, regions []allocator.Region) *Heap {
		if h := (&Heap{memory: p, module: m}); h.find(regions, writable) {
			return h
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.blocks = threadBlocks(p, h.module)
	h.readCaches()
	return h, nil
}

// find finds the size classes and the tree.
func (h *Heap) find(regions []allocator.Region, writable func(evidence.Addr, uint64) bool) bool {
	var ok bool
	if h.classes, ok = findClasses(regions); !ok {
		return false
	}
	s := search{memory: h.memory, writable: writable, classes: h.classes}
	root, ok := s.root(regions)
	h.tree = tree{&h.classes, h.memory, root}
	return ok
}

// threadBlocks are the threads' copies of a module's thread-local memory.
func threadBlocks(p *image.Process, m *image.Module) []*allocator.Region {
	list := make([]*allocator.Region, len(p.Threads))
	if m.Object == nil {
		return list
	}
	tls, ok := m.Object.TLS()
	if !ok || tls.Memsz > mostBlock {
		return list
	}
	for i := range p.Threads {
		start, err := p.ThreadLocal(&p.Threads[i], m)
		if err != nil {
			continue
		}
		b := &allocator.Region{Start: start, Data: make([]byte, tls.Memsz)}
		if _, err := p.ReadMemory(start, b.Data); err == nil {
			list[i] = b
		}
	}
	return list
}

func (h *Heap) word(at evidence.Addr) (uint64, error) { return image.Uint64(h.memory, at) }

// Name implements allocator.Heap.
func (h *Heap) Name() evidence.Allocator { return evidence.Jemalloc }

// Module implements allocator.Heap.
func (h *Heap) Module() *image.Module { return h.module }

// At implements allocator.Heap.
func (h *Heap) At(at evidence.Addr) (allocator.Object, bool) {
	e, err := h.tree.extentAt(at)
	if err != nil {
		return allocator.Object{}, false
	}
	o := allocator.Object{Thread: -1}
	switch {
	case e.state == dirty || e.state == muzzy || e.state == retained:
		o.Start, o.Size, o.State, o.List, o.Pages = e.base(), e.size, evidence.ChunkFree, evidence.ListPages, true
		return o, true
	case e.state != active || !e.fits(&h.classes):
		return o, false // while jemalloc works on it
	}
	o.Start, o.Size, o.State = e.addr, h.classes.sizes[e.class], evidence.ChunkInUse
	if e.slab {
		index := uint64(at-e.addr) / o.Size
		if index >= e.size/o.Size {
			return o, false
		}
		o.Start += evidence.Addr(index * o.Size)
		if e.isFree(index) {
			o.State, o.List = evidence.ChunkFree, evidence.ListSlab
			return o, true
		}
	}
	if at < o.Start || at >= o.End() {
		return o, false
	}
	o.Own = h.own[o.Start]
	if thread, ok := h.cached[o.Start]; ok {
		o.State, o.List, o.Thread = evidence.ChunkFree, evidence.ListThread, thread
	} else if h.incomplete {
		o.State = evidence.ChunkUnknown
	}
	return o, true
}
