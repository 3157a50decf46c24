package image

import "diagnose/evidence"

const (
	// arenaSize is HEAP_MAX_SIZE of glibc's malloc/arena.c on x86-64, at
	// whose multiples the heaps of arenas other than the main one start.
	arenaSize = 64 << 20
	// chunkMmapped is IS_MMAPPED of malloc/malloc.c.
	chunkMmapped  = 2
	chunkFlags    = 7
	mostBigChunks = 256
)

// inArena reports whether addr is in a heap of a glibc arena, by the heap_info
// at its start: the arena's address, the previous heap, the size in use and the
// size made accessible.
func inArena(memory Memory, mappings Mappings, addr evidence.Addr) bool {
	base := addr &^ (arenaSize - 1)
	var word [4]uint64
	for i := range word {
		v, err := Uint64(memory, base+evidence.Addr(8*i))
		if err != nil {
			return false
		}
		word[i] = v
	}
	arena, previous, size, accessible := evidence.Addr(word[0]), word[1], word[2], word[3]
	i := mappings.index(arena)
	return i >= 0 && mappings[i].Writable() && arena%8 == 0 && arena != 0 && previous%arenaSize == 0 &&
		size > 0 && size <= accessible && accessible <= arenaSize && uint64(addr-base) < accessible
}

// inBigChunk returns the block that malloc mapped for itself around addr, found
// by following the chunk headers from the mapping's start. The kernel merges
// neighbouring blocks into one mapping.
func inBigChunk(memory Memory, m *Mapping, addr evidence.Addr) (addrRange, bool) {
	at := m.Start
	for range mostBigChunks {
		size, err := Uint64(memory, at+8)
		if err != nil || size&chunkFlags != chunkMmapped {
			return addrRange{}, false
		}
		size &^= chunkFlags
		if size == 0 || size%pageSize != 0 || size > uint64(m.End-at) {
			return addrRange{}, false
		}
		if addr < at+evidence.Addr(size) {
			return addrRange{at, at + evidence.Addr(size)}, true
		}
		at += evidence.Addr(size)
	}
	return addrRange{}, false
}
