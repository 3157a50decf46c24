package object

import "encoding/binary"

// hashTable finds the symbols that may have a name.
type hashTable interface {
	// visitNamed calls visit with indexes below count of symbols whose hash is
	// the name's. It terminates whatever the contents.
	visitNamed(name string, count int, visit func(int))
}

// gnuHash is a .gnu.hash section: four words of header, a Bloom filter of
// 64-bit words, buckets, and chains of hashes whose lowest bit ends them
// (binutils, bfd/elflink.c, elf_gnu_hash_process_symidx).
type gnuHash []byte

// newGNUHash returns nil for a table whose header does not fit.
func newGNUHash(b []byte) hashTable {
	if len(b) < 16 {
		return nil
	}
	buckets := uint64(binary.LittleEndian.Uint32(b))
	bloom := uint64(binary.LittleEndian.Uint32(b[8:]))
	if buckets == 0 || bloom == 0 || 16+8*bloom+4*buckets > uint64(len(b)) {
		return nil
	}
	return gnuHash(b)
}

func (h gnuHash) visitNamed(name string, count int, visit func(int)) {
	le := binary.LittleEndian
	buckets, first := le.Uint32(h), le.Uint32(h[4:])
	bloom, shift := le.Uint32(h[8:]), le.Uint32(h[12:])
	hash := gnuHashOf(name)
	word := le.Uint64(h[16+8*uint64(hash/64%bloom):])
	if word>>(hash%64)&(word>>(hash>>(shift&31)%64))&1 == 0 {
		return
	}
	table := h[16+8*uint64(bloom):]
	chain := table[4*uint64(buckets):]
	i := uint64(le.Uint32(table[4*uint64(hash%buckets):]))
	if i < uint64(first) {
		return
	}
	for ; i < uint64(count) && 4*(i-uint64(first))+4 <= uint64(len(chain)); i++ {
		h := le.Uint32(chain[4*(i-uint64(first)):])
		if h|1 == hash|1 {
			visit(int(i))
		}
		if h&1 != 0 {
			return
		}
	}
}

// end returns one more than the highest index of a symbol in the chains.
func (h gnuHash) end() int {
	le := binary.LittleEndian
	buckets, first := uint64(le.Uint32(h)), uint64(le.Uint32(h[4:]))
	table := h[16+8*uint64(le.Uint32(h[8:])):]
	chain := table[4*buckets:]
	last := uint64(0)
	for i := range buckets {
		last = max(last, uint64(le.Uint32(table[4*i:])))
	}
	if last < first {
		return int(first)
	}
	for 4*(last-first)+4 <= uint64(len(chain)) && le.Uint32(chain[4*(last-first):])&1 == 0 {
		last++
	}
	return int(last + 1)
}

func gnuHashOf(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}

// sysvHash is a .hash section (gABI, "Hash Table").
type sysvHash []byte

func newSysvHash(b []byte) hashTable {
	if len(b) < 8 {
		return nil
	}
	buckets, chains := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	if buckets == 0 || 8+4*(buckets+chains) > uint64(len(b)) {
		return nil
	}
	return sysvHash(b)
}

func (h sysvHash) visitNamed(name string, count int, visit func(int)) {
	le := binary.LittleEndian
	buckets, chains := le.Uint32(h), le.Uint32(h[4:])
	next := h[8+4*uint64(buckets):]
	i := le.Uint32(h[8+4*uint64(sysvHashOf(name)%buckets):])
	// A hostile chain may be a cycle: a chain has at most as many links as
	// there are symbols.
	for range chains {
		if i == 0 || i >= chains || uint64(i) >= uint64(count) {
			return
		}
		visit(int(i))
		i = le.Uint32(next[4*uint64(i):])
	}
}

// end returns the number of symbols.
func (h sysvHash) end() int { return int(binary.LittleEndian.Uint32(h[4:])) }

func sysvHashOf(name string) uint32 {
	h := uint32(0)
	for i := range len(name) {
		h = h<<4 + uint32(name[i])
		h ^= h >> 24 & 0xf0
	}
	return h & 0x0fffffff
}
