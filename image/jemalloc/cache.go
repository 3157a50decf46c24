package jemalloc

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image/allocator"
)

// The layouts of struct tcache_slow_s and tcache_s (tcache_structs.h), and of struct cache_bin_s.
const (
	offLink      = 0  // tcache_slow_s.link, a ring of the caches of an arena
	offBins      = 32 // .cache_bin_array_descriptor.bins
	offFill      = 52 // .lg_fill_div, with two more bytes for each bin
	binSize      = 24
	offHead      = 0  // cache_bin_s.stack_head
	offFull      = 18 // .low_bits_full
	offEmpty     = 20 // .low_bits_empty
	cacheHeader  = 8  // before the bins of tcache_s
	mostCached   = 1 << 13
	mostCaches   = 4096
	mostBlock    = 64 << 10 // of the thread-local memory that is searched, in bytes
	mostInCaches = 4 << 20
)

// offCache is the offset of tcache_slow_s.tcache.
func (c *classes) offCache() evidence.Addr {
	filled := evidence.Addr(offFill + 3*c.bins)
	return (filled+7)&^7 + 8 // after dyn_alloc
}

// readCaches reads the caches of all threads. A cache that cannot be read leaves the heap incomplete:
// then an object that no cache was seen to have may be in it.
func (h *Heap) readCaches() {
	h.cached, h.own = map[evidence.Addr]int{}, map[evidence.Addr]bool{}
	seen := map[evidence.Addr]bool{}
	for i, b := range h.blocks {
		if b == nil {
			h.incomplete = true
			continue
		}
		slow, found := h.classes.cacheIn(b)
		switch {
		case !found:
			continue // the thread never called malloc
		case seen[slow]:
			h.incomplete = true
			continue
		}
		seen[slow] = true
		h.readCache(slow, i)
	}
	if len(seen) == 0 {
		h.incomplete = true // without caches, or of another layout
	}
	h.readOthers(seen)
}

// cacheIn finds a thread's struct tcache_slow_s in its thread-local memory: it has the address of the
// tcache_s, which has that of the tcache_slow_s (tsd.h, both are in the thread's tsd_t).
func (c *classes) cacheIn(b *allocator.Region) (evidence.Addr, bool) {
	off := int(c.offCache())
	for at := 0; at+off+allocator.Word <= len(b.Data); at += allocator.Word {
		slow := b.Start + evidence.Addr(at)
		cache := evidence.Addr(b.Word(at + off))
		if cache < b.Start || cache%allocator.Word != 0 || cache+cacheHeader > b.End() {
			continue
		}
		if b.Word(int(cache-b.Start)) == uint64(slow) && b.Word(at+offBins) == uint64(cache+cacheHeader) {
			return slow, true
		}
	}
	return 0, false
}

// readOthers reads the caches that are in an arena's ring with those of the threads and that no
// thread was found to have: those of mallctl("tcache.create") and of threads that cannot be read.
func (h *Heap) readOthers(seen map[evidence.Addr]bool) {
	var starts []evidence.Addr
	for at := range seen {
		starts = append(starts, at)
	}
	for _, start := range starts {
		for at := start; ; {
			next, err := h.word(at + offLink)
			if at = evidence.Addr(next); err != nil || len(seen) > mostCaches {
				h.incomplete = true
				break
			}
			if at == start || seen[at] {
				break
			}
			seen[at] = true
			h.readCache(at, -1)
		}
	}
}

// readCache reads the cached objects of a thread.
func (h *Heap) readCache(slow evidence.Addr, thread int) {
	cache, err := h.word(slow + h.classes.offCache())
	if err != nil {
		h.incomplete = true
		return
	}
	if back, err := h.word(evidence.Addr(cache)); err != nil || evidence.Addr(back) != slow {
		h.incomplete = true
		return
	}
	if own, err := h.word(slow + h.classes.offCache() - allocator.Word); err == nil {
		h.own[evidence.Addr(own)] = true
	}
	for i := range h.classes.sizes {
		at := evidence.Addr(cache) + cacheHeader + evidence.Addr(i*binSize)
		ended, ok := h.readBin(at, i, thread)
		if !ok {
			h.incomplete = true
		}
		if ended {
			return
		}
	}
}

// readBin reads the stack of cached objects of a class. It reports whether it is the end of the bins:
// those of classes that are not cached have no stack, or an empty one.
func (h *Heap) readBin(at evidence.Addr, class, thread int) (ended, ok bool) {
	var raw [binSize]byte
	if _, err := h.memory.ReadMemory(at, raw[:]); err != nil {
		return true, false
	}
	head := evidence.Addr(binary.LittleEndian.Uint64(raw[offHead:]))
	if head == 0 || head%allocator.Word != 0 || !head.Canonical() {
		return true, class >= h.classes.bins
	}
	room := binary.LittleEndian.Uint16(raw[offEmpty:]) - binary.LittleEndian.Uint16(raw[offFull:])
	count := int(binary.LittleEndian.Uint16(raw[offEmpty:])-uint16(head)) / allocator.Word
	if count > mostCached || count*allocator.Word > int(room) {
		return true, class >= h.classes.bins
	}
	if count == 0 {
		return false, true
	}
	stack := make([]byte, count*allocator.Word)
	if _, err := h.memory.ReadMemory(head, stack); err != nil {
		return true, class >= h.classes.bins
	}
	ok = true
	for off := 0; off < len(stack); off += allocator.Word {
		object := evidence.Addr(binary.LittleEndian.Uint64(stack[off:]))
		if len(h.cached) >= mostInCaches || !h.holds(object, class) {
			ok = false
			continue
		}
		h.cached[object] = thread
	}
	return false, ok
}

// holds reports whether an object of a class begins at an address.
func (h *Heap) holds(at evidence.Addr, class int) bool {
	e, err := h.tree.extentOf(at)
	if err != nil || e.state != active || e.class != class || !e.fits(&h.classes) {
		return false
	}
	if !e.slab {
		return at == e.addr
	}
	off := uint64(at - e.addr)
	return off%h.classes.sizes[class] == 0 && off/h.classes.sizes[class] < e.size/h.classes.sizes[class]
}
