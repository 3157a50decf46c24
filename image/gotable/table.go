package gotable

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"diagnose/evidence"
)

// layout distinguishes the forms of the table by their age.
type layout uint8

const (
	layout116 layout = iota // Go 1.16 and 1.17
	layout118               // Go 1.18 and 1.19
	layout120               // Go 1.20 and later
)

// magics are abi.PCLnTabMagic (internal/abi/symtab.go). The tables of Go 1.2 to
// 1.15, 0xfffffffb, are not read.
var magics = map[uint32]layout{0xfffffffa: layout116, 0xfffffff0: layout118, 0xfffffff1: layout120}

// headerSize is the size of the longest header (runtime.pcHeader).
const headerSize = 72

// maxFunctions bounds the functions of a table.
const maxFunctions = 1 << 26

// Table is the function table of a Go program in memory. Addresses are the
// process's. It is safe for concurrent use if its memory is.
type Table struct {
	// Module is what the linker recorded of the program's memory.
	Module Module

	memory memory
	layout layout
	start  evidence.Addr
	count  uint64
	// The parts of the table.
	names, units, files, values, functions evidence.Addr
}

// Open reads the header of the table at start. areas are the parts of the
// program's data in which runtime.firstmoduledata may be: it says where the
// code begins, and proves that the header is one.
func Open(m Memory, start evidence.Addr, areas []Area) (*Table, error) {
	t := &Table{memory: memory{m, new(atomic.Int64)}, start: start}
	if err := t.readHeader(); err != nil {
		return nil, fmt.Errorf("go function table at %v: %w", start, err)
	}
	if err := t.findModule(areas); err != nil {
		return nil, fmt.Errorf("go function table at %v: %w", start, err)
	}
	return t, nil
}

func (t *Table) readHeader() error {
	var h [headerSize]byte
	if _, err := t.memory.ReadMemory(t.start, h[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	known := false
	if t.layout, known = magics[le.Uint32(h[:])]; !known {
		return fmt.Errorf("magic number %#x is not known", le.Uint32(h[:]))
	}
	if h[4] != 0 || h[5] != 0 || h[6] != 1 || h[7] != 8 {
		return fmt.Errorf("header % x is not one of x86-64", h[4:8])
	}
	t.count = le.Uint64(h[8:])
	if t.count == 0 || t.count > maxFunctions {
		return fmt.Errorf("%d functions", t.count)
	}
	// Go 1.18 put the start of the text before the offsets.
	offsets := h[24:]
	if t.layout >= layout118 {
		offsets = h[32:]
	}
	for i, part := range []*evidence.Addr{&t.names, &t.units, &t.files, &t.values, &t.functions} {
		offset := le.Uint64(offsets[8*i:])
		if offset > 1<<40 {
			return fmt.Errorf("part %d has offset %#x", i, offset)
		}
		*part = t.start + evidence.Addr(offset)
	}
	return nil
}

// entry returns the first address of function i and where its record is. For
// i == count it is the end of the last function (runtime.functab).
func (t *Table) entry(i uint64) (begin, record evidence.Addr, err error) {
	if t.layout < layout118 {
		pair, err := t.memory.words(t.functions+evidence.Addr(16*i), 2)
		if err != nil {
			return 0, 0, err
		}
		return evidence.Addr(pair[0]), t.functions + evidence.Addr(pair[1]), nil
	}
	pair, err := t.memory.words(t.functions+evidence.Addr(8*i), 1)
	if i == t.count { // it has no second half
		var last uint32
		last, err = t.memory.u32(t.functions + evidence.Addr(8*i))
		pair = []uint64{uint64(last)}
	}
	if err != nil {
		return 0, 0, err
	}
	return t.Module.Text + evidence.Addr(uint32(pair[0])), t.functions + evidence.Addr(pair[0]>>32), nil
}
