package unwind

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// fileArea is a section of an object's file.
type fileArea struct {
	title string
	addr  uint64
	data  []byte
}

func (a *fileArea) name() string { return a.title }

func (a *fileArea) bytes(addr, n uint64) ([]byte, error) {
	offset := addr - a.addr
	if addr < a.addr || offset > uint64(len(a.data)) || n > uint64(len(a.data))-offset {
		return nil, fmt.Errorf("%s: %d bytes at %#x are outside the section", a.title, n, addr)
	}
	return a.data[offset : offset+n : offset+n], nil
}

// memoryArea is .eh_frame in a process's memory, whose end is not known.
type memoryArea struct {
	title  string
	memory image.Memory
	bias   uint64
}

func (a *memoryArea) name() string { return a.title }

func (a *memoryArea) bytes(addr, n uint64) ([]byte, error) {
	if n > maxEntry {
		return nil, fmt.Errorf("%s: %d bytes at %#x", a.title, n, addr)
	}
	b := make([]byte, n)
	if _, err := a.memory.ReadMemory(evidence.Addr(addr+a.bias), b); err != nil {
		return nil, fmt.Errorf("%s: %w", a.title, err)
	}
	return b, nil
}
