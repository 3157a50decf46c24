package image

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
)

// Memory is the target's memory.
type Memory interface {
	// ReadMemory fills p from addr and returns how many bytes it filled. It
	// fills fewer than len(p) only with an error, a *MemoryError where the
	// address space is the cause.
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
}

// MemoryError says why an address could not be read.
type MemoryError struct {
	Addr evidence.Addr
	// Reason completes "memory at ADDR ...": "is not mapped", "is not in the
	// core", "is past the end of the truncated core".
	Reason string
	// Unmapped tells addresses that the process itself could not have read
	// from those that only we cannot.
	Unmapped bool
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("memory at %v %s", e.Addr, e.Reason)
}

func asMemoryError(err error) (*MemoryError, bool) {
	var m *MemoryError
	return m, errors.As(err, &m)
}

// Uint64 reads a little-endian 64-bit word.
func Uint64(m Memory, addr evidence.Addr) (uint64, error) {
	var b [8]byte
	if _, err := m.ReadMemory(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// Uint32 reads a little-endian 32-bit word.
func Uint32(m Memory, addr evidence.Addr) (uint32, error) {
	var b [4]byte
	if _, err := m.ReadMemory(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

// Struct reads a little-endian structure of numbers, without padding, like
// encoding/binary.
func Struct[T any](m Memory, addr evidence.Addr) (*T, error) {
	v := new(T)
	b := make([]byte, binary.Size(v))
	if _, err := m.ReadMemory(addr, b); err != nil {
		return nil, err
	}
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		return nil, err
	}
	return v, nil
}

// CString reads a NUL-terminated string of at most limit bytes. whole is
// false when no NUL was found among them.
func CString(m Memory, addr evidence.Addr, limit int) (s string, whole bool, err error) {
	const step = 256
	var out []byte
	for len(out) < limit {
		chunk := make([]byte, min(step, limit-len(out)))
		n, err := m.ReadMemory(addr+evidence.Addr(len(out)), chunk)
		for i, c := range chunk[:n] {
			if c == 0 {
				return string(append(out, chunk[:i]...)), true, nil
			}
		}
		out = append(out, chunk[:n]...)
		if err != nil {
			return string(out), false, err
		}
	}
	return string(out), false, nil
}
