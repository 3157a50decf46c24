package tracee

import (
	"encoding/binary"
	"io"
	"math/bits"
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
	// replaced is the text that Replace has overwritten, in ascending order.
	replaced []Replacement
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
	m.cover(p[:n], uint64(at))
	return n, err
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
