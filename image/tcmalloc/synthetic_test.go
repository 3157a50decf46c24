package tcmalloc

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image/allocator"
	"diagnose/image/allocator/allocatortest"
)

// A made process: the module's data with the classes, the central lists, a pointer to the thread's cache and the
// root of the page map; one leaf; spans; the cache; and the pages.
const (
	dataAt    = 0x10000000
	centralAt = dataAt + 0x1000
	headsAt   = dataAt + 0x30000
	rootAt    = dataAt + 0x31000
	dataLen   = 0x31000 + rootBytes + 0x1000
	leafAt    = 0x7f0000000000
	spansAt   = 0x7f0001000000
	cacheAt   = 0x7f0002000000
	pagesAt   = 0x7f0080000000 // the first page of a leaf
	firstPage = pagesAt >> pageShift
	pagesLen  = 2 * pageSize
	leafLen   = 0x40 * allocator.Word
)

// The made heap: a span of objects of 64 bytes, a span of three pages, and one of four free ones.
const (
	largeAt = pagesAt + 2*pageSize
	freeAt  = pagesAt + 5*pageSize
)

type scene struct {
	central, leaf, spans, cache, pages []byte
}

func madeClasses() (list []class) {
	list = append(list, class{})
	for size := uint64(8); size < largest; size *= 2 {
		list = append(list, class{size, (size + pageSize - 1) / pageSize, leastBatch}, class{size + size/2&^7, (size + size/2 + pageSize - 1) / pageSize, leastBatch})
	}
	list = append(list, class{largest, 32, leastBatch})
	return append(list[:2], list[3:]...) // 8, 16, 24, 32, ...
}

func classOf(size uint64) int {
	for i, c := range madeClasses() {
		if c.size == size {
			return i
		}
	}
	return -1
}

// newScene makes the heap. Of the objects of 64 bytes, the first four were handed out; two of these are in the thread's cache, so
// that the others, 2 and 3, are in use.
func newScene() *scene {
	s := &scene{central: make([]byte, len(madeClasses())*centralSize), leaf: make([]byte, leafLen), spans: make([]byte, 3*spanSize),
		cache: make([]byte, cacheSize), pages: make([]byte, pagesLen)}
	small := classOf(64)
	for i := range madeClasses() {
		for _, off := range []int{offEmpty, offNonempty} {
			head := uint64(centralAt + i*centralSize + off)
			allocatortest.Put(s.central, i*centralSize+off+offNext, head, head)
		}
		allocatortest.Put(s.central, i*centralSize+offClass, uint64(i))
		binary.LittleEndian.PutUint32(s.cache[i*listSize+offObject:], uint32(madeClasses()[i].size))
	}
	head := uint64(centralAt + small*centralSize + offNonempty)
	allocatortest.Put(s.central, small*centralSize+offNonempty+offNext, spansAt, spansAt)
	allocatortest.Put(s.central, small*centralSize+offSpans, 1)
	allocatortest.Put(s.spans, 0, firstPage, 1, head, head, pagesAt+4*64, uint64(small)<<16|4)
	for i := 4; i < pageSize/64-1; i++ {
		allocatortest.Put(s.pages, i*64, uint64(pagesAt+(i+1)*64))
	}
	allocatortest.Put(s.cache, small*listSize, pagesAt+64, 2)
	allocatortest.Put(s.pages, 64, pagesAt)
	allocatortest.Put(s.spans, spanSize, largeAt>>pageShift, 3)
	allocatortest.Put(s.spans, 2*spanSize, freeAt>>pageShift, 4, 0, 0, 0, 1<<24)
	for page, span := range map[int]uint64{0: 0, 2: 1, 4: 1, 5: 2, 8: 2} {
		allocatortest.Put(s.leaf, page*allocator.Word, spansAt+span*spanSize)
	}
	return s
}

func (s *scene) open() (*Heap, bool) {
	data := make([]byte, dataLen)
	list := madeClasses()
	for i, c := range list {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(c.batch))
		binary.LittleEndian.PutUint32(data[sizesBytes+4*i:], uint32(c.size))
		allocatortest.Put(data, 2*sizesBytes+8*i, c.pages)
	}
	allocatortest.Put(data, 2*sizesBytes+pagesBytes, uint64(len(list)))
	copy(data[centralAt-dataAt:headsAt-dataAt], s.central)
	allocatortest.Put(data, headsAt-dataAt, cacheAt)
	allocatortest.Put(data, rootAt-dataAt+int(firstPage>>leafBits)*allocator.Word, leafAt)
	memory := allocatortest.Memory{{Start: dataAt, Size: dataLen, Data: data}, {Start: leafAt, Size: leafBytes, Data: s.leaf},
		{Start: spansAt, Size: uint64(len(s.spans)), Data: s.spans}, {Start: cacheAt, Size: cacheSize, Data: s.cache},
		{Start: pagesAt, Size: pagesLen, Data: s.pages}}
	h := &Heap{memory: memory}
	return h, h.find([]allocator.Region{{Start: dataAt, Data: data}})
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
		{pagesAt + 10, allocator.Object{Start: pagesAt, Size: 64, State: evidence.ChunkFree, List: evidence.ListThread, Thread: -1, Linked: true}},
		{pagesAt + 3*64 - 1, allocator.Object{Start: pagesAt + 128, Size: 64, State: evidence.ChunkInUse, Thread: -1, Linked: true}},
		{pagesAt + pageSize - 64, allocator.Object{Start: pagesAt + pageSize - 64, Size: 64, State: evidence.ChunkFree, List: evidence.ListSpan, Thread: -1, Linked: true}},
		{largeAt + pageSize, allocator.Object{Start: largeAt, Size: 3 * pageSize, State: evidence.ChunkInUse, Thread: -1}},
		{freeAt + 2*pageSize, allocator.Object{Start: freeAt, Size: 4 * pageSize, State: evidence.ChunkFree, List: evidence.ListPages, Thread: -1, Pages: true}},
	} {
		if o, found := h.At(x.at); !found || o != x.want {
			t.Errorf("%v: %+v, %v, want %+v", x.at, o, found, x.want)
		}
	}
	for _, at := range []evidence.Addr{0, pagesAt - 1, pagesAt + pageSize, freeAt + 4*pageSize, dataAt, 1 << 63} {
		if o, found := h.At(at); found {
			t.Errorf("%v: %+v", at, o)
		}
	}
}

// TestWritten: a write to a freed object damages a list. Then the first object of the list is free, and of the
// others that are in no other list it is not told.
func TestWritten(t *testing.T) {
	for name, link := range map[string]uint64{"nothing": 0, "text": 0x4141414141414141, "inside": pagesAt + 136, "itself": pagesAt + 64,
		"an object of a list": pagesAt + 5*64} {
		s := newScene()
		allocatortest.Put(s.pages, 64, link)
		h, ok := s.open()
		if !ok {
			t.Fatal("no heap")
		}
		for i, want := range []evidence.ChunkState{evidence.ChunkUnknown, evidence.ChunkFree, evidence.ChunkUnknown, evidence.ChunkUnknown} {
			o, found := h.At(evidence.Addr(pagesAt + 64*i))
			if !found || o.State != want {
				t.Errorf("%s, object %d: %+v, want %s", name, i, o, want)
			}
		}
	}
}

// FuzzHeap reads a heap whose structures are any bytes.
func FuzzHeap(f *testing.F) {
	s := newScene()
	f.Add(s.central, s.leaf, s.spans, s.cache, s.pages, uint64(pagesAt))
	f.Fuzz(func(t *testing.T, central, leaf, spans, cache, pages []byte, at uint64) {
		s := &scene{central: central, leaf: leaf, spans: spans, cache: cache, pages: pages}
		h, ok := s.open()
		if !ok {
			return
		}
		for _, a := range []evidence.Addr{evidence.Addr(at), pagesAt, pagesAt + 200, largeAt + pageSize, freeAt + pageSize} {
			if o, found := h.At(a); found && (a < o.Start || a >= o.End()) {
				t.Errorf("%v is not in %+v", a, o)
			}
		}
	})
}
