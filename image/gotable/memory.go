package gotable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"diagnose/evidence"
)

// Memory is the memory of a process, as image.Memory describes it.
type Memory interface {
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
}

// maxEffort bounds the entries of pc-value tables that are decoded for one
// program. A lookup takes some dozens; only damaged tables need more than this.
const maxEffort = 1 << 26

// memory reads numbers and texts, and counts the work.
type memory struct {
	Memory
	spent *atomic.Int64
}

func (m memory) spend() error {
	if m.spent.Add(1) > maxEffort {
		return errors.New("too much work for the Go function table, which is probably damaged")
	}
	return nil
}

func (m memory) u32(addr evidence.Addr) (uint32, error) {
	var b [4]byte
	if _, err := m.ReadMemory(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

// words reads n 64-bit words.
func (m memory) words(addr evidence.Addr, n int) ([]uint64, error) {
	b := make([]byte, 8*n)
	if _, err := m.ReadMemory(addr, b); err != nil {
		return nil, err
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return list, nil
}

// maxName bounds the name of a function or a file. Instances of generic
// functions have long names.
const maxName = 8 << 10

// text reads a text that ends with a NUL byte.
func (m memory) text(addr evidence.Addr) (string, error) {
	var out []byte
	for len(out) < maxName {
		var chunk [64]byte
		n, err := m.ReadMemory(addr+evidence.Addr(len(out)), chunk[:])
		for i, c := range chunk[:n] {
			if c == 0 {
				return string(append(out, chunk[:i]...)), nil
			}
		}
		out = append(out, chunk[:n]...)
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("the name at %v has more than %d bytes", addr, maxName)
}
