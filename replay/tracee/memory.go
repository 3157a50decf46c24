package tracee

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"math/bits"
	"slices"
	"unsafe"

	"diagnose/replay/ptrace"
)

// PageSize is the size of a page in bytes.
const PageSize = 4096

// SiteSize is sizeof(struct dg_site_patch).
const SiteSize = 32

// Memory is the process's memory. Reads return the program's own bytes, without the jumps and traps
// that Replace and breakpoints put into its text.
type Memory struct {
	*ptrace.Memory
	// Replaced are the program's own bytes, in ascending order.
	Replaced []Words
	// traps are the int3 instructions of breakpoints, in ascending order. They are above what
	// Replace puts into the text.
	traps []coveredByte
	// allLifted: none of them is in memory, for an analysis.
	allLifted bool
}

// OpenMemory opens the memory of a thread's process.
func OpenMemory(tid int) (*Memory, error) {
	m, err := ptrace.OpenMemory(tid)
	if err != nil {
		return nil, err
	}
	return &Memory{Memory: m}, nil
}

// ReadAt reads len(p) bytes at an address, or fails.
func (m *Memory) ReadAt(p []byte, at int64) (int, error) {
	n, err := m.ReadPlaced(p, at)
	if len(m.Replaced) == 0 {
		return n, err
	}
	low, high := uint64(at), uint64(at)+uint64(n)
	i, _ := slices.BinarySearchFunc(m.Replaced, low, func(w Words, low uint64) int {
		return cmp.Compare(w.Addr+uint64(len(w.Data)), low+1)
	})
	for ; i < len(m.Replaced) && m.Replaced[i].Addr < high; i++ {
		w := &m.Replaced[i]
		if from := max(low, w.Addr); from < w.Addr+uint64(len(w.Data)) {
			copy(p[from-low:n], w.Data[from-w.Addr:])
		}
	}
	return n, err
}

// Replace overwrites the program's text.
func (m *Memory) Replace(at uint64, code []byte) error {
	original := make([]byte, len(code))
	if _, err := m.ReadAt(original, int64(at)); err != nil {
		return err
	}
	if _, err := m.WriteAt(code, int64(at)); err != nil {
		return err
	}
	i, found := m.findReplaced(at)
	if found {
		return nil // the program's bytes are saved already
	}
	m.Replaced = slices.Insert(m.Replaced, i, Words{at, original})
	return nil
}

// Restore restores the bytes that Replace has overwritten at an address. Memory that is not mapped
// any more has none.
func (m *Memory) Restore(at uint64) error {
	i, found := m.findReplaced(at)
	if !found {
		return nil
	}
	if _, err := m.WriteAt(m.Replaced[i].Data, int64(at)); err != nil && m.Mapped(at) {
		return err
	}
	m.Replaced = slices.Delete(m.Replaced, i, i+1)
	return nil
}

// Renew puts the code that Replace has put at an address there again, if the program's own bytes are
// in its place: the object was loaded again. Other memory stays as it is.
func (m *Memory) Renew(at uint64, code []byte) error {
	i, found := m.findReplaced(at)
	if !found {
		return nil
	}
	own := m.Replaced[i].Data
	have := make([]byte, len(own))
	if _, err := m.ReadPlaced(have, int64(at)); err != nil || !bytes.Equal(have, own) {
		return nil // nothing is mapped there, the code is there, or another object is
	}
	_, err := m.WriteAt(code, int64(at))
	return err
}

func (m *Memory) findReplaced(at uint64) (int, bool) {
	return slices.BinarySearchFunc(m.Replaced, at, func(w Words, at uint64) int { return cmp.Compare(w.Addr, at) })
}

// Words is memory with its contents.
type Words struct {
	Addr uint64
	Data []byte
}

// ReadStruct reads one of the Raw types of package agent. They have the layout of the C structures, without padding, so their
// bytes are read in place: each stop of a replay reads some.
func ReadStruct[T any](m io.ReaderAt, addr uint64) (*T, error) {
	v := new(T)
	if _, err := m.ReadAt(bytesOf(v), int64(addr)); err != nil {
		return nil, err
	}
	return v, nil
}

// bytesOf is the memory of a structure of numbers.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// Span is a range of addresses, [start, end).
type Span struct{ Start, End uint64 }

// Size returns the number of bytes.
func (s Span) Size() uint64 { return s.End - s.Start }

// Has reports whether an address is in the span.
func (s Span) Has(addr uint64) bool { return addr >= s.Start && addr < s.End }

// FirstDifference returns the first index from at on where the slices differ; len(a) if there is
// none.
func FirstDifference(a, b []byte, at int) int {
	for ; at+8 <= len(a); at += 8 {
		if x := binary.LittleEndian.Uint64(a[at:]) ^ binary.LittleEndian.Uint64(b[at:]); x != 0 {
			return at + bits.TrailingZeros64(x)/8
		}
	}
	for ; at < len(a) && a[at] == b[at]; at++ {
	}
	return at
}
