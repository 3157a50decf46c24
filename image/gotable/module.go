package gotable

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// Area is a part of the address space, End not included.
type Area struct{ Start, End evidence.Addr }

// Contains reports whether addr is in the area.
func (a Area) Contains(addr evidence.Addr) bool { return addr >= a.Start && addr < a.End }

// Module is what runtime.firstmoduledata says of a program (runtime/symtab.go).
type Module struct {
	// Text is where the Go code begins, which offsets of code count from.
	Text evidence.Addr
	// Code is the Go code, Data and BSS the variables with pointers, Types the
	// runtime's descriptions of types, from which their names' offsets count.
	Code, Data, BSS, Types Area
	// PointerFree are the variables without pointers that start as zeros.
	PointerFree Area
	// FunctionData is go:func.*, which offsets of inline trees count from; 0
	// in programs before Go 1.18.
	FunctionData evidence.Addr
}

const (
	// maxData bounds the data that is searched for the record.
	maxData = 256 << 20
	// searchStep is how much data is read at once.
	searchStep = 1 << 20
	// recordWords is the part of the record that is read, in words.
	recordWords = 48
)

// findModule searches the areas for the record whose first words are the
// addresses and lengths of this very table.
func (t *Table) findModule(areas []Area) error {
	left := uint64(maxData)
	for _, a := range areas {
		for at := a.Start; at < a.End && left > 0; {
			size := min(uint64(a.End-at), searchStep, left)
			left -= size
			buffer := make([]byte, size)
			n, _ := t.memory.ReadMemory(at, buffer) // pages that cannot be read do not have it
			for i := 0; i+8 <= n; i += 8 {
				if evidence.Addr(binary.LittleEndian.Uint64(buffer[i:])) == t.start && t.isModule(at+evidence.Addr(i)) {
					return nil
				}
			}
			at += evidence.Addr(size)
		}
	}
	return fmt.Errorf("runtime.firstmoduledata is not in the program's data")
}

// isModule reads the record at addr, and reports whether it describes the
// table.
func (t *Table) isModule(addr evidence.Addr) bool {
	w, err := t.memory.words(addr, recordWords)
	if err != nil {
		return false
	}
	// pcHeader, then the slices funcnametab, cutab, filetab, pctab, pclntable
	// and ftab, each an address, a length and a capacity.
	for i, part := range []evidence.Addr{t.start, t.names, t.units, t.files, t.values, t.functions, t.functions} {
		at := max(0, 3*i-2)
		if evidence.Addr(w[at]) != part || i > 0 && w[at+1] > w[at+2] {
			return false
		}
	}
	if n := w[17]; n != t.count && n != t.count+1 {
		return false
	}
	m := moduleOf(w, t.layout)
	first, last := evidence.Addr(w[20]), evidence.Addr(w[21])
	if m.Text > first || first >= last || last > m.Code.End {
		return false
	}
	for _, a := range []Area{m.Code, m.Data, m.BSS, m.PointerFree, m.Types} {
		if a.Start > a.End || !a.End.Canonical() {
			return false
		}
	}
	if rodata := evidence.Addr(w[typesWord(t.layout)+2]); m.FunctionData != 0 && (m.FunctionData < rodata || m.FunctionData > rodata+1<<32) {
		return false
	}
	t.Module = m
	return true
}

func moduleOf(w []uint64, l layout) Module {
	area := func(i int) Area { return Area{evidence.Addr(w[i]), evidence.Addr(w[i+1])} }
	m := Module{Text: evidence.Addr(w[22]), Code: area(22), Data: area(26), BSS: area(28), PointerFree: area(30)}
	types := typesWord(l)
	m.Types = area(types)
	if l >= layout118 {
		m.FunctionData = evidence.Addr(w[types+3])
	}
	return m
}

// typesWord is the index of the field types.
func typesWord(l layout) int {
	if l >= layout120 {
		return 37 // after covctrs, ecovctrs, end, gcdata and gcbss
	}
	return 35
}
