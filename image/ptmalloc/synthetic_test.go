package ptmalloc

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

const (
	testData = 0x10000   // of the C library: the arena
	testHeap = 0x5000000 // the program break
	heapLen  = 0x4000

	testMapped = 0x7000000 // memory without a file
)

// memory is the memory of a made process.
type memory []struct {
	at   evidence.Addr
	data []byte
}

func (m memory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for _, r := range m {
		if addr >= r.at && addr < r.at+evidence.Addr(len(r.data)) {
			n := copy(p, r.data[addr-r.at:])
			if n < len(p) {
				return n, fmt.Errorf("memory at %v ends", addr)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("memory at %v is not there", addr)
}

// scene is a heap with an arena and chunks, built by hand.
type scene struct {
	arena, heap []byte
	mapped      []byte
	layout      stateLayout
	at          int
}

const arenaAt = 0x200 // in the data

func newScene(top evidence.Addr) *scene {
	s := &scene{arena: make([]byte, 0x2000), heap: make([]byte, heapLen), layout: layoutOf(top, true)}
	base := uint64(testData + arenaAt)
	for i := range binCount {
		own := base + uint64(s.layout.bins) + uint64(i*16) - 16
		s.state(s.layout.bins+evidence.Addr(i*16), own)
		s.state(s.layout.bins+evidence.Addr(i*16+8), own)
	}
	s.state(s.layout.next, base)
	s.state(s.layout.system, heapLen)
	s.state(s.layout.system+8, heapLen)
	return s
}

func (s *scene) state(off evidence.Addr, v uint64) {
	binary.LittleEndian.PutUint64(s.arena[arenaAt+off:], v)
}

func (s *scene) put(off int, v uint64) { binary.LittleEndian.PutUint64(s.heap[off:], v) }

// chunk appends a chunk and returns its offset.
func (s *scene) chunk(size uint64) int {
	at := s.at
	s.put(at+8, size|prevInUse)
	s.at += int(size)
	return at
}

// bin puts a chunk in the unsorted list.
func (s *scene) bin(at int) {
	head := uint64(testData+arenaAt) + uint64(s.layout.bins) - 16
	size := binary.LittleEndian.Uint64(s.heap[at+8:]) &^ chunkFlags
	s.put(at+16, head)
	s.put(at+24, head)
	s.state(s.layout.bins, uint64(testHeap+at))
	s.state(s.layout.bins+8, uint64(testHeap+at))
	next := at + int(size)
	s.put(next, size)
	s.put(next+8, binary.LittleEndian.Uint64(s.heap[next+8:])&^prevInUse)
}

func (s *scene) fast(i int, at int) {
	s.state(s.layout.fast+evidence.Addr(i*8), uint64(testHeap+at))
}

// finish puts the top after the chunks.
func (s *scene) finish() {
	s.put(s.at+8, uint64(heapLen-s.at)|prevInUse)
	s.state(s.layout.top, uint64(testHeap+s.at))
}

// sceneMappings are the mappings of a scene.
type sceneMappings image.Mappings

func (s *scene) mappings() sceneMappings {
	return sceneMappings{
		{Start: testData, End: testData + evidence.Addr(len(s.arena)), Perms: "rw-"},
		{Start: testHeap, End: testHeap + heapLen, Perms: "rw-", Path: "[heap]"},
		{Start: testMapped, End: testMapped + evidence.Addr(len(s.mapped)), Perms: "rw-"}}
}

func (l sceneMappings) find(at evidence.Addr) *image.Mapping {
	for i := range l {
		if l[i].Contains(at) {
			return &l[i]
		}
	}
	return nil
}

func (s *scene) open() (*Heap, error) {
	p := &image.Process{Mappings: image.Mappings(s.mappings())}
	return openIn(p, memory{{testData, s.arena}, {testHeap, s.heap}, {testMapped, s.mapped}}, nil, 31)
}

// small is a heap of four objects, the second of which is in the unsorted list, and a free one in a fast list.
func small(top evidence.Addr) (*scene, []int) {
	s := newScene(top)
	list := []int{s.chunk(0x30), s.chunk(0x420), s.chunk(0x50), s.chunk(0x40), s.chunk(0x60)}
	s.finish()
	s.bin(list[1])
	if s.layout.fast != 0 {
		s.fast(2, list[3])
	}
	return s, list
}

// TestLayouts: each layout of the arena is told from the others.
func TestLayouts(t *testing.T) {
	for _, top := range topOffsets {
		s, list := small(top)
		h, err := s.open()
		if err != nil {
			t.Fatalf("top at %d: %v", top, err)
		}
		if len(h.Arenas) != 1 || len(h.Segments()) != 1 || len(h.BadLinks) != 0 {
			t.Fatalf("top at %d: %+v", top, h)
		}
		seg := h.Segments()[0]
		if bad, err := h.Check(&seg); bad != nil || err != nil {
			t.Errorf("top at %d: %+v, %v", top, bad, err)
		}
		for i, want := range []evidence.FreeList{"", evidence.ListUnsorted, "", evidence.ListFast, ""} {
			if i == 3 && s.layout.fast == 0 {
				want = ""
			}
			c, ok := h.At(evidence.Addr(testHeap + list[i] + 20))
			if !ok || c.Addr != evidence.Addr(testHeap+list[i]) || c.Free.List != want {
				t.Errorf("top at %d, chunk %d: %+v, %v", top, i, c, ok)
			}
		}
	}
}

// TestBadHeaders: the header that was overwritten is found, and the size that it had.
func TestBadHeaders(t *testing.T) {
	for _, x := range []struct {
		name  string
		chunk int
		word  uint64
		fault evidence.HeaderFault
		bad   int
		size  uint64
	}{
		{"text", 2, 0x4141414141414141, evidence.HeaderBeyond, 2, 0x50},
		{"small", 2, 0x11, evidence.HeaderSize, 2, 0x50},
		{"too large", 3, 0x100000 | prevInUse, evidence.HeaderBeyond, 3, 0x40},
		{"null byte", 4, 0x60, evidence.HeaderPrevFree, 4, 0x60},
		{"mapped", 3, 0x40 | prevInUse | isMmapped, evidence.HeaderFlags, 3, 0x40},
		{"free before", 2, 0x50 | prevInUse, evidence.HeaderPrevUsed, 2, 0x50},
		// A size that is possible and leads into the next objects.
		{"grown", 2, 0x70, evidence.HeaderSkips, 2, 0x50},
	} {
		s, list := small(topOffsets[0])
		s.put(list[x.chunk]+8, x.word)
		h, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		seg := h.Segments()[0]
		bad, err := h.Check(&seg)
		if err != nil || bad == nil || bad.Fault != x.fault || bad.Chunk.Addr != evidence.Addr(testHeap+list[x.bad]) || bad.TrueSize() != x.size {
			t.Errorf("%s: %+v, %v", x.name, bad, err)
			continue
		}
		if bad.Before == nil || bad.Before.Addr != evidence.Addr(testHeap+list[x.bad-1]) {
			t.Errorf("%s: the chunk before is %+v", x.name, bad.Before)
		}
	}
}

// TestBadLinks: links that were overwritten, and a list that has a chunk twice.
func TestBadLinks(t *testing.T) {
	for _, x := range []struct {
		name  string
		spoil func(s *scene, list []int)
		fault evidence.LinkFault
	}{
		{"forward", func(s *scene, list []int) { s.put(list[1]+16, 0x4141) }, evidence.LinkNowhere},
		{"back", func(s *scene, list []int) { s.put(list[1]+24, uint64(testHeap+list[2])) }, evidence.LinkUnpaired},
		{"fast", func(s *scene, list []int) { s.put(list[3]+16, 0x123456789) }, evidence.LinkNowhere},
		{"twice", func(s *scene, list []int) { s.put(list[3]+16, uint64(testHeap+list[3])) }, evidence.LinkCycle},
		{"other size", func(s *scene, list []int) { s.put(list[3]+16, uint64(testHeap+list[4])) }, evidence.LinkOtherSize},
	} {
		s, list := small(topOffsets[0])
		x.spoil(s, list)
		h, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		if len(h.BadLinks) != 1 || h.BadLinks[0].Fault != x.fault {
			t.Errorf("%s: %+v", x.name, h.BadLinks)
		}
	}
}

// TestNoArena: memory without an arena, and memory with two, have no heap that is certain.
func TestNoArena(t *testing.T) {
	s, _ := small(topOffsets[0])
	clear(s.arena)
	if _, err := s.open(); err == nil {
		t.Error("a heap in memory without an arena")
	}
	s, _ = small(topOffsets[0])
	s.state(s.layout.next, testHeap)
	if _, err := s.open(); err == nil {
		t.Error("a heap whose list of arenas does not lead back")
	}
}

// mappedChunks is memory with two chunks that malloc mapped for themselves, of one page and of two pages less the 4080 bytes before them, and a page of the program between.
func mappedChunks() []byte {
	data := make([]byte, 6*pageSize)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(data[at:], v) }
	put(8, pageSize|isMmapped)
	put(pageSize, 5)
	put(pageSize+8, pageSize|isMmapped)
	put(3*pageSize-16, 4080)
	put(3*pageSize-8, 2*pageSize-4080|isMmapped)
	return data
}

func TestMappedChunks(t *testing.T) {
	s, _ := small(topOffsets[0])
	s.mapped = mappedChunks()
	h, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	var got []evidence.Addr
	h.MappedChunks(func(c *Chunk) bool {
		got = append(got, c.Addr-testMapped, evidence.Addr(c.Size))
		return true
	})
	if want := []evidence.Addr{0, pageSize, 3*pageSize - 16, 2*pageSize - 4080}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// FuzzHeap reads a heap whose arena and chunks are any bytes.
func FuzzHeap(f *testing.F) {
	for _, top := range topOffsets {
		s, _ := small(top)
		f.Add(s.arena, s.heap, mappedChunks())
	}
	f.Fuzz(func(t *testing.T, arena, heap, mapped []byte) {
		s := &scene{arena: make([]byte, 0x2000), heap: make([]byte, heapLen), mapped: make([]byte, 6*pageSize)}
		copy(s.mapped, mapped)
		copy(s.arena, arena)
		copy(s.heap, heap)
		h, err := s.open()
		if err != nil {
			return
		}
		for _, seg := range h.Segments() {
			if _, err := h.Check(&seg); err != nil {
				t.Log(err)
			}
			var last evidence.Addr
			h.Chunks(&seg, func(c *Chunk) bool {
				if c.Size == 0 || c.End() > seg.End {
					t.Errorf("chunk %+v in %+v", c, seg)
				}
				last = c.Addr
				return true
			})
			h.At(last + 8)
		}
		last := evidence.Addr(0)
		h.MappedChunks(func(c *Chunk) bool {
			if m := s.mappings().find(c.Addr); m == nil || c.Addr < last || c.End() <= c.Addr || c.End() > m.End {
				t.Errorf("mapped chunk %+v", c)
			}
			last = c.End()
			return true
		})
	})
}
