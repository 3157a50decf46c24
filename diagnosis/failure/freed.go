package failure

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
)

// FreedBlock is a block of the heap that is free.
type FreedBlock struct {
	// Addr is the address that malloc returned, Size how many bytes were usable.
	Addr evidence.Addr
	Size int
}

// tcacheLayout is a version of glibc's tcache_perthread_struct
// (malloc/malloc.c), each thread's lists of free blocks: counts of 64 lists,
// then their heads. It is a block of the heap itself, known by its size.
type tcacheLayout struct {
	chunk     uint64 // of the block with its header
	countSize int
}

var tcacheLayouts = []tcacheLayout{
	{0x290, 2}, // 2.30 to 2.41
	{0x250, 1}, // 2.26 to 2.29
}

const (
	tcacheLists = 64
	// chunkFlags are the low bits of a chunk's size word.
	chunkFlags = 7
	// arenaHead covers the data before the first block of an arena that is not the main one:
	// heap_info and malloc_state.
	arenaHead = 4096
	// maxFreeBlocks bounds the walk of one thread's lists.
	maxFreeBlocks = 8192
)

// Freed finds the free block that contains an address. It knows the blocks in the lists of threads
// (tcache) whose lists are the first block of an arena, which they are unless threads share an
// arena. Other blocks are not found.
func Freed(p *image.Process, addr evidence.Addr) (FreedBlock, bool) {
	return freedIn(p, p.Mappings, addr)
}

func freedIn(mem image.Memory, mappings []image.Mapping, addr evidence.Addr) (FreedBlock, bool) {
	for i := range mappings {
		m := &mappings[i]
		if !m.Writable() || m.Path != "" && m.Path != "[heap]" {
			continue
		}
		at, layout, ok := tcacheAt(mem, m.Start)
		if !ok {
			continue
		}
		lists := freeLists{mem: mem, mappings: mappings, budget: maxFreeBlocks}
		if b, ok := lists.findBlock(at, layout, addr); ok {
			return b, true
		}
	}
	return FreedBlock{}, false
}

// tcacheAt recognises an arena by its first block: at the start of the mapping for the main arena,
// after the arena's head for others.
func tcacheAt(mem image.Memory, start evidence.Addr) (evidence.Addr, tcacheLayout, bool) {
	head := make([]byte, arenaHead)
	n, _ := mem.ReadMemory(start, head)
	for off := 0; off+16 <= n; off += 16 {
		size := binary.LittleEndian.Uint64(head[off+8:])
		for _, layout := range tcacheLayouts {
			if size&^chunkFlags == layout.chunk && size&1 != 0 {
				return start + evidence.Addr(off) + 16, layout, true
			}
		}
		if off == 0 && !arenaInfo(head[:n], start) {
			break
		}
	}
	return 0, tcacheLayout{}, false
}

// arenaInfo reports whether a mapping begins with heap_info, whose first word points at the
// malloc_state after it.
func arenaInfo(head []byte, start evidence.Addr) bool {
	const farthest = 64
	if len(head) < 8 {
		return false
	}
	arena := evidence.Addr(binary.LittleEndian.Uint64(head))
	return arena > start && arena <= start+farthest
}

// freeLists walks the lists of one thread.
type freeLists struct {
	mem      image.Memory
	mappings []image.Mapping
	budget   int
}

func (l *freeLists) findBlock(at evidence.Addr, layout tcacheLayout, addr evidence.Addr) (FreedBlock, bool) {
	table := make([]byte, tcacheLists*(layout.countSize+8))
	if _, err := l.mem.ReadMemory(at, table); err != nil {
		return FreedBlock{}, false
	}
	for i := range tcacheLists {
		count := int(table[i*layout.countSize])
		if layout.countSize == 2 {
			count = int(binary.LittleEndian.Uint16(table[2*i:]))
		}
		head := binary.LittleEndian.Uint64(table[tcacheLists*layout.countSize+8*i:])
		b := FreedBlock{Addr: evidence.Addr(head), Size: 24 + 16*i}
		for ; count > 0 && l.plausible(b.Addr) && l.budget > 0; count-- {
			if l.budget--; addr >= b.Addr && addr < b.Addr+evidence.Addr(b.Size) {
				return b, true
			}
			next, err := l.next(b.Addr)
			if err != nil {
				break
			}
			b.Addr = next
		}
	}
	return FreedBlock{}, false
}

func (l *freeLists) plausible(block evidence.Addr) bool {
	if block == 0 || block%16 != 0 {
		return false
	}
	for i := range l.mappings {
		if l.mappings[i].Contains(block) {
			return l.mappings[i].Writable()
		}
	}
	return false
}

// next is the link of a free block. From glibc 2.32 on it is combined with
// the block's own address (PROTECT_PTR, "safe linking").
func (l *freeLists) next(block evidence.Addr) (evidence.Addr, error) {
	link, err := readPointer(l.mem, block)
	if err != nil || link == 0 || l.plausible(link) {
		return link, err
	}
	return link ^ block>>12, nil
}
