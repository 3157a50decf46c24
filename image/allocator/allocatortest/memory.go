package allocatortest

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// Memory is the memory of a made process: pieces, of which what no data was given for is zero.
type Memory []Piece

// Piece is a piece of memory, Size bytes long.
type Piece struct {
	Start evidence.Addr
	Size  uint64
	Data  []byte
}

// ReadMemory implements image.Memory.
func (m Memory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for _, r := range m {
		if addr < r.Start || uint64(addr-r.Start) >= r.Size {
			continue
		}
		off := uint64(addr - r.Start)
		n := int(min(uint64(len(p)), r.Size-off))
		clear(p[:n])
		if off < uint64(len(r.Data)) {
			copy(p[:n], r.Data[off:])
		}
		if n < len(p) {
			return n, fmt.Errorf("memory at %v ends", addr)
		}
		return n, nil
	}
	return 0, fmt.Errorf("memory at %v is not there", addr)
}

// Holds reports whether a range is in one piece.
func (m Memory) Holds(start evidence.Addr, size uint64) bool {
	for _, r := range m {
		if start >= r.Start && uint64(start-r.Start) < r.Size && size <= r.Size-uint64(start-r.Start) {
			return true
		}
	}
	return false
}

// Put writes words to data at an offset.
func Put(data []byte, off int, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(data[off+8*i:], w)
	}
}
