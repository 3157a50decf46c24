package object

import (
	"bytes"
	"sort"
)

// addressIndex lists the addressable symbols of a table by value. It holds
// numbers only; names are read on lookup.
type addressIndex struct {
	starts []uint64
	refs   []uint32 // the symbol's index in its table
	// reach[i] is the highest end among the symbols 0 to i.
	reach []uint64
}

func (t *symbolTable) buildIndex() *addressIndex {
	x := &addressIndex{starts: make([]uint64, 0, t.count()), refs: make([]uint32, 0, t.count())}
	for i := range t.count() {
		if s := t.symbolAt(i); s.addressable() {
			x.starts = append(x.starts, s.value+t.shift)
			x.refs = append(x.refs, uint32(i))
		}
	}
	x.sort()
	x.reach = make([]uint64, len(x.starts))
	highest := uint64(0)
	for i, ref := range x.refs {
		s := t.symbolAt(int(ref))
		end := x.starts[i] + s.size
		if end < x.starts[i] {
			end = ^uint64(0)
		}
		highest = max(highest, end)
		x.reach[i] = highest
	}
	return x
}

// sort orders by address with a radix sort, a tenth of the time of a
// comparison sort at the sizes of a libc.
func (x *addressIndex) sort() {
	const digit = 11
	highest := uint64(0)
	for _, v := range x.starts {
		highest |= v
	}
	starts, refs := make([]uint64, len(x.starts)), make([]uint32, len(x.refs))
	for shift := 0; shift < 64 && highest>>shift != 0; shift += digit {
		var place [1 << digit]int
		for _, v := range x.starts {
			place[v>>shift&(1<<digit-1)]++
		}
		sum := 0
		for d := range place {
			place[d], sum = sum, sum+place[d]
		}
		for i, v := range x.starts {
			d := v >> shift & (1<<digit - 1)
			starts[place[d]], refs[place[d]] = v, x.refs[i]
			place[d]++
		}
		x.starts, starts = starts, x.starts
		x.refs, refs = refs, x.refs
	}
}

// maxWalk bounds the symbols examined for one address: in a hostile table they
// may all be nested.
const maxWalk = 1 << 14

// match is what one table knows of an address.
type match struct {
	table *symbolTable
	// cover is the innermost symbol whose extent holds the address.
	cover    rawSymbol
	hasCover bool
	// mark is the nearest preceding symbol without a size, if no sized symbol
	// starts after it.
	mark    rawSymbol
	hasMark bool
	// sized is the start of the nearest preceding symbol with a size.
	sized    uint64
	hasSized bool
}

// lookup finds the symbols of an address. Of several with the same start it
// takes the name that is last in byte order, as gdb does
// (minsyms.c, compare_minimal_symbols): "read" before "__read".
func (t *symbolTable) lookup(addr uint64) match {
	m := match{table: t}
	x := t.index()
	above := sort.Search(len(x.starts), func(i int) bool { return x.starts[i] > addr })
	lowest := max(0, above-maxWalk)
	for i := above - 1; i >= lowest && x.reach[i] > addr; i-- {
		if m.hasCover && x.starts[i] != m.cover.value+t.shift {
			break
		}
		s := t.symbolAt(int(x.refs[i]))
		if addr-x.starts[i] < s.size {
			t.prefer(&m.cover, &m.hasCover, s)
		}
	}
	if m.hasCover {
		return m
	}
	for i := above - 1; i >= lowest; i-- {
		if m.hasMark && x.starts[i] != m.mark.value+t.shift {
			break
		}
		s := t.symbolAt(int(x.refs[i]))
		if s.size > 0 {
			m.sized, m.hasSized = x.starts[i], true
			m.hasMark = m.hasMark && m.mark.value+t.shift > m.sized
			break
		}
		t.prefer(&m.mark, &m.hasMark, s)
	}
	return m
}

// prefer replaces best by s if the name of s sorts after it. Labels that start
// with a dot belong to the assembler and annobin.
func (t *symbolTable) prefer(best *rawSymbol, has *bool, s rawSymbol) {
	name := t.rawName(&s)
	if len(name) == 0 || s.size == 0 && name[0] == '.' {
		return
	}
	if !*has || bytes.Compare(name, t.rawName(best)) > 0 {
		*best, *has = s, true
	}
}
