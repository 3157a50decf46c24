package unwind

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
)

const stackWindow = 4096

// stackReader reads words through a window of one page, because the words that
// a walk reads are close together. It belongs to one walk.
type stackReader struct {
	memory image.Memory
	spent  *effort
	base   evidence.Addr
	size   int
	data   [stackWindow]byte
}

// word reads the 64-bit word at addr.
func (s *stackReader) word(addr evidence.Addr) (uint64, error) {
	if v, ok := s.windowed(addr); ok {
		return v, nil
	}
	s.base = addr &^ (stackWindow - 1)
	// A page may be readable in part. A failure is an error only for a read
	// beyond that part.
	s.size, _ = s.memory.ReadMemory(s.base, s.data[:])
	if v, ok := s.windowed(addr); ok {
		return v, nil
	}
	return image.Uint64(s.memory, addr)
}

func (s *stackReader) windowed(addr evidence.Addr) (uint64, bool) {
	offset := addr - s.base
	if addr < s.base || offset >= stackWindow || offset+8 > evidence.Addr(s.size) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(s.data[offset:]), true
}

// read implements op.ReadMemoryFunc.
func (s *stackReader) read(b []byte, addr uint64) (int, error) {
	return s.memory.ReadMemory(evidence.Addr(addr), b)
}
