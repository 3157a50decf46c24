package staticscan

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// rawValue shows a word that has no type as a number, longer memory as bytes.
func rawValue(m image.Memory, addr evidence.Addr, size int) evidence.Value {
	if size <= 0 || size > 64 {
		return evidence.Value{Unavailable: fmt.Sprintf("%d bytes without a type", max(size, 0))}
	}
	b := make([]byte, size)
	if _, err := m.ReadMemory(addr, b); err != nil {
		return evidence.Value{Unavailable: err.Error()}
	}
	switch size {
	case 1, 2, 4, 8:
		var word [8]byte
		copy(word[:], b)
		return evidence.Value{Text: fmt.Sprintf("%#x", binary.LittleEndian.Uint64(word[:]))}
	}
	return evidence.Value{Text: fmt.Sprintf("% x", b)}
}

// readWord reads an unsigned number of 1, 2, 4 or 8 bytes.
func readWord(m image.Memory, addr evidence.Addr, size int) (uint64, error) {
	if size != 1 && size != 2 && size != 4 && size != 8 {
		return 0, fmt.Errorf("a word of %d bytes", size)
	}
	var b [8]byte
	if _, err := m.ReadMemory(addr, b[:size]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
