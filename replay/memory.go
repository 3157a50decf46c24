package replay

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"diagnose/replay/ptrace"
)

const pageSize = 4096

// siteSize is sizeof(struct dg_site_patch).
const siteSize = 32

// processMemory is the process's memory. Reads return the program's own bytes, without the jumps
// and traps that inlined puts into its text.
type processMemory struct {
	*ptrace.Memory
	// replaced are the program's own bytes, in ascending order.
	replaced []words
}

func openMemory(tid int) (*processMemory, error) {
	m, err := ptrace.OpenMemory(tid)
	if err != nil {
		return nil, err
	}
	return &processMemory{Memory: m}, nil
}

// ReadAt reads len(p) bytes at an address, or fails.
func (m *processMemory) ReadAt(p []byte, at int64) (int, error) {
	n, err := m.Memory.ReadAt(p, at)
	if len(m.replaced) == 0 {
		return n, err
	}
	low, high := uint64(at), uint64(at)+uint64(n)
	i, _ := slices.BinarySearchFunc(m.replaced, low, func(w words, low uint64) int {
		return cmp.Compare(w.addr+uint64(len(w.data)), low+1)
	})
	for ; i < len(m.replaced) && m.replaced[i].addr < high; i++ {
		w := &m.replaced[i]
		if from := max(low, w.addr); from < w.addr+uint64(len(w.data)) {
			copy(p[from-low:n], w.data[from-w.addr:])
		}
	}
	return n, err
}

// replace overwrites the program's text.
func (m *processMemory) replace(at uint64, code []byte) error {
	original := make([]byte, len(code))
	if _, err := m.ReadAt(original, int64(at)); err != nil {
		return err
	}
	if _, err := m.WriteAt(code, int64(at)); err != nil {
		return err
	}
	i, found := m.find(at)
	if found {
		return nil // the program's bytes are saved already
	}
	m.replaced = slices.Insert(m.replaced, i, words{at, original})
	return nil
}

// restore restores the bytes that replace has overwritten at an address.
func (m *processMemory) restore(at uint64) error {
	i, found := m.find(at)
	if !found {
		return nil
	}
	if _, err := m.WriteAt(m.replaced[i].data, int64(at)); err != nil {
		return err
	}
	m.replaced = slices.Delete(m.replaced, i, i+1)
	return nil
}

func (m *processMemory) find(at uint64) (int, bool) {
	return slices.BinarySearchFunc(m.replaced, at, func(w words, at uint64) int { return cmp.Compare(w.addr, at) })
}

// words is memory as it is at the place.
type words struct {
	addr uint64
	data []byte
}

// readStruct reads one of the Raw types of package agent.
func readStruct[T any](m io.ReaderAt, addr uint64) (*T, error) {
	v := new(T)
	p := make([]byte, binary.Size(v))
	if _, err := m.ReadAt(p, int64(addr)); err != nil {
		return nil, err
	}
	if _, err := binary.Decode(p, binary.LittleEndian, v); err != nil {
		return nil, err
	}
	return v, nil
}

// span is a range of addresses, [start, end).
type span struct{ start, end uint64 }

func (s span) size() uint64 { return s.end - s.start }
