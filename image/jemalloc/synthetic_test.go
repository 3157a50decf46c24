package jemalloc

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image/allocator"
	"diagnose/image/allocator/allocatortest"
)

// A made process: the data of the module with the table of classes, the root at rootAt and after it the
// thread-local memory; one leaf; and the structures of extents.
const (
	dataAt  = 0x10000000
	rootAt  = dataAt + 0x1000
	dataLen = 0x1000 + leafBytes + 0x1000
	leafAt  = 0x7f0000000040
	infoAt  = 0x7f0001000000
	blockAt = 0x20000000
	stackAt = 0x21000000
	pagesAt = 0x7f0040000000
	leafLen = 0x200 * allocator.Word // of the leaf's data that is not zero
)

// The pages of the made heap: a slab of objects of 48 bytes, a large object of 20480 bytes with the
// page of padding, and free pages.
const (
	slabAt  = pagesAt
	largeAt = pagesAt + 0x10000
	freeAt  = pagesAt + 0x20000
)

type scene struct {
	leaf, info, block, stack []byte
}

// class48 and class20480 are the indices of these sizes.
const (
	class48, class20480 = 3, 37
)

func newScene() *scene {
	s := &scene{leaf: make([]byte, leafLen), info: make([]byte, 3*extentSize), block: make([]byte, 0x600), stack: make([]byte, 0x100)}
	// Of the slab's 256 objects, the first 16 are allocated, of which two are cached.
	s.extent(0, slabAt, 3*pageSize, class48, true, active, 240)
	allocatortest.Put(s.info, offBitmap, ^uint64(0xffff), ^uint64(0), ^uint64(0), ^uint64(0))
	s.extent(1, largeAt+0x40, 6*pageSize, class20480, false, active, 0)
	s.extent(2, freeAt, 4*pageSize, 232, false, dirty, 0)
	for page := range evidence.Addr(3) {
		s.page(slabAt+page*pageSize, 0, class48, 1)
	}
	s.page(largeAt, 1, class20480, 0)
	s.page(largeAt+5*pageSize, 1, 232, 0)
	s.page(freeAt, 2, 232, uint64(dirty)<<2)
	s.page(freeAt+3*pageSize, 2, 232, uint64(dirty)<<2)
	s.cache(slabAt, slabAt+48)
	return s
}

func (s *scene) extent(i int, addr, size, class uint64, slab bool, state extentState, free uint64) {
	bits := class<<classShift | uint64(state)<<stateShift | free<<freeShift
	if slab {
		bits |= 1 << slabBit
	}
	allocatortest.Put(s.info, i*extentSize, bits, addr, size)
}

func (s *scene) page(at evidence.Addr, info int, class, low uint64) {
	index := int(at >> pageShift & levelMask)
	allocatortest.Put(s.leaf, index*allocator.Word, class<<addressBits|uint64(infoAt+info*extentSize)|low)
}

// cache makes the thread's cache, with two objects of 48 bytes.
func (s *scene) cache(objects ...uint64) {
	c := classesOf(4)
	const slow, cache = 0x40, 0x180
	allocatortest.Put(s.block, slow, blockAt+slow)
	allocatortest.Put(s.block, slow+offBins, blockAt+cache+cacheHeader)
	allocatortest.Put(s.block, slow+int(c.offCache()), blockAt+cache)
	allocatortest.Put(s.block, cache, blockAt+slow)
	const room = 16
	for i := range c.bins {
		bin := cache + cacheHeader + i*binSize
		empty := uint64(stackAt + room*allocator.Word)
		head := empty
		if i == class48 {
			head -= uint64(len(objects)) * allocator.Word
			allocatortest.Put(s.stack, int(head-stackAt), objects...)
		}
		allocatortest.Put(s.block, bin+offHead, head)
		allocatortest.Put(s.block, bin+16, stackAt<<16&0xffff0000|empty<<32&0xffff00000000)
	}
}

func (s *scene) open() (*Heap, bool) {
	data := make([]byte, dataLen)
	c := classesOf(4)
	allocatortest.Put(data, 0, c.sizes[:tableLength]...)
	allocatortest.Put(data, rootAt-dataAt+int(pagesAt>>leafReach&levelMask)*allocator.Word, leafAt)
	memory := allocatortest.Memory{{Start: dataAt, Size: dataLen, Data: data}, {Start: leafAt, Size: leafBytes, Data: s.leaf},
		{Start: infoAt, Size: uint64(len(s.info)), Data: s.info}, {Start: blockAt, Size: uint64(len(s.block)), Data: s.block},
		{Start: stackAt, Size: uint64(len(s.stack)), Data: s.stack}}
	h := &Heap{memory: memory, blocks: []*allocator.Region{{Start: blockAt, Data: s.block}}}
	if !h.find([]allocator.Region{{Start: dataAt, Data: data}}, memory.Holds) {
		return nil, false
	}
	h.readCaches()
	return h, true
}

// TestSynthetic: objects of each kind, from the structures alone.
func TestSynthetic(t *testing.T) {
	h, ok := newScene().open()
	if !ok {
		t.Fatal("no heap")
	}
	for _, x := range []struct {
		at   evidence.Addr
		want allocator.Object
	}{
		{slabAt + 10, allocator.Object{Start: slabAt, Size: 48, State: evidence.ChunkFree, List: evidence.ListThread}},
		{slabAt + 2*48 + 47, allocator.Object{Start: slabAt + 96, Size: 48, State: evidence.ChunkInUse, Thread: -1}},
		{slabAt + 2*pageSize, allocator.Object{Start: slabAt + 170*48, Size: 48, State: evidence.ChunkFree, List: evidence.ListSlab, Thread: -1}},
		{largeAt + 3*pageSize, allocator.Object{Start: largeAt + 0x40, Size: 20480, State: evidence.ChunkInUse, Thread: -1}},
		{freeAt + 2*pageSize + 1, allocator.Object{Start: freeAt, Size: 4 * pageSize, State: evidence.ChunkFree, List: evidence.ListPages, Thread: -1, Pages: true}},
	} {
		if o, found := h.At(x.at); !found || o != x.want {
			t.Errorf("%v: %+v, %v, want %+v", x.at, o, found, x.want)
		}
	}
	for _, at := range []evidence.Addr{0, pagesAt - 1, largeAt, largeAt + 6*pageSize, freeAt + 4*pageSize, dataAt, 1 << 63} {
		if o, found := h.At(at); found {
			t.Errorf("%v: %+v", at, o)
		}
	}
}

// TestDamaged: where structures do not agree, nothing is told.
func TestDamaged(t *testing.T) {
	for name, spoil := range map[string]func(s *scene){
		"count of free objects": func(s *scene) { s.extent(0, slabAt, 3*pageSize, class48, true, active, 239) },
		"class":                 func(s *scene) { s.extent(0, slabAt, 3*pageSize, class48+1, true, active, 240) },
		"address":               func(s *scene) { s.extent(0, slabAt+48, 3*pageSize, class48, true, active, 240) },
		"element":               func(s *scene) { s.page(slabAt, 0, class48, 1|3<<5) },
	} {
		s := newScene()
		spoil(s)
		if _, ok := s.open(); ok {
			t.Errorf("%s: a heap", name)
		}
	}
	s := newScene()
	allocatortest.Put(s.stack, 0x70, slabAt+7) // no object begins there
	h, ok := s.open()
	if !ok {
		t.Fatal("no heap")
	}
	if o, _ := h.At(slabAt + 2*48); o.State != evidence.ChunkUnknown {
		t.Errorf("a cache with a pointer into an object: %+v", o)
	}
}

// FuzzHeap reads a heap whose structures are any bytes.
func FuzzHeap(f *testing.F) {
	s := newScene()
	f.Add(s.leaf, s.info, s.block, s.stack, uint64(slabAt))
	f.Fuzz(func(t *testing.T, leaf, info, block, stack []byte, at uint64) {
		s := &scene{leaf: leaf, info: info, block: block, stack: stack}
		h, ok := s.open()
		if !ok {
			return
		}
		for _, a := range []evidence.Addr{evidence.Addr(at), slabAt, largeAt + pageSize, freeAt + pageSize} {
			if o, found := h.At(a); found && (a < o.Start || a >= o.End()) {
				t.Errorf("%v is not in %+v", a, o)
			}
		}
	})
}
