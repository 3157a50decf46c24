package tcmalloc

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// The layout of class ThreadCache (thread_cache.h).
const (
	listSize    = 32 // of a FreeList
	offLength   = 8  // FreeList::length_
	offObject   = 24 // FreeList::size_
	offNextHeap = 4144
	offPrevHeap = 4152
	cacheSize   = 4160
	cacheAlign  = 64
	mostCaches  = 4096
	mostLength  = 1 << 22 // of one list of a thread
	mostBlock   = 64 << 10
)

// cache is the cache of a thread.
type cache struct {
	at evidence.Addr
	// thread is the index of the thread, -1 if it is not known.
	thread     int
	raw        [cacheSize]byte
	next, prev evidence.Addr
}

// readCache reads a cache: each of its lists has the size of its class.
func (h *Heap) readCache(at evidence.Addr) (*cache, bool) {
	if at == 0 || at%cacheAlign != 0 || !at.Canonical() {
		return nil, false
	}
	// Most places are no caches: two sizes tell.
	const looked = 3
	for i := 1; i < looked; i++ {
		if size, err := image.Uint32(h.memory, at+evidence.Addr(i*listSize+offObject)); err != nil || uint64(size) != h.classes[i].size {
			return nil, false
		}
	}
	c := &cache{at: at, thread: -1}
	if _, err := h.memory.ReadMemory(at, c.raw[:]); err != nil {
		return nil, false
	}
	le := binary.LittleEndian
	for i := range h.classes {
		if uint64(le.Uint32(c.raw[i*listSize+offObject:])) != h.classes[i].size {
			return nil, false
		}
	}
	c.next, c.prev = evidence.Addr(le.Uint64(c.raw[offNextHeap:])), evidence.Addr(le.Uint64(c.raw[offPrevHeap:]))
	return c, true
}

// list is the first object and the length of the list of a class.
func (c *cache) list(class int) (evidence.Addr, int) {
	raw := c.raw[class*listSize:]
	return evidence.Addr(binary.LittleEndian.Uint64(raw)), int(binary.LittleEndian.Uint32(raw[offLength:]))
}

// findCaches finds the threads' caches: a word of the module's data leads to the first of their list
// (ThreadCache::thread_heaps_). Other words may lead to caches that were deleted, which no list leads back to. It reports
// whether there is one whole list.
func (h *Heap) findCaches(regions []allocator.Region) bool {
	seen := map[evidence.Addr]bool{}
	for i := range regions {
		r := &regions[i]
		for off := 0; off+allocator.Word <= len(r.Data); off += allocator.Word {
			c, ok := h.readCache(evidence.Addr(r.Word(off)))
			if !ok || c.prev != 0 || seen[c.at] {
				continue
			}
			seen[c.at] = true
			list, whole := h.cachesFrom(c)
			if whole && h.caches != nil || len(seen) > mostCaches {
				return false
			}
			if whole {
				h.caches = list
			}
		}
	}
	return h.caches != nil
}

// cachesFrom follows the list of caches from its first one. It reports whether the list is whole.
func (h *Heap) cachesFrom(c *cache) (list []*cache, whole bool) {
	for len(list) < mostCaches {
		if list = append(list, c); c.next == 0 {
			return list, true
		}
		next, ok := h.readCache(c.next)
		if !ok || next.prev != c.at {
			return nil, false
		}
		c = next
	}
	return nil, false
}

// assign finds the thread of each cache: its thread-local memory has the cache's address
// (ThreadCache::threadlocal_data_).
func (h *Heap) assign(p *image.Process) {
	if h.module.Object == nil {
		return
	}
	tls, ok := h.module.Object.TLS()
	if !ok || tls.Memsz > mostBlock {
		return
	}
	data := make([]byte, tls.Memsz)
	for i := range p.Threads {
		start, err := p.ThreadLocal(&p.Threads[i], h.module)
		if err != nil {
			continue
		}
		if _, err := p.ReadMemory(start, data); err != nil {
			continue
		}
		b := allocator.Region{Start: start, Data: data}
		for _, c := range h.caches {
			for off := 0; off+allocator.Word <= len(data); off += allocator.Word {
				if b.Word(off) == uint64(c.at) {
					c.thread = i
				}
			}
		}
	}
}
