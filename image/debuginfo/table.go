package debuginfo

import (
	"debug/dwarf"
	"encoding/binary"
	"sort"
)

// unitTable is the result of one walk over a unit's DIEs: the functions with
// code, the variables with a static address, and the scopes that qualify names.
type unitTable struct {
	functions []functionRange // by low
	statics   []static        // by addr
	locals    []static        // thread-local variables, by their offset
	scopes    []scope         // by start
}

type functionRange struct {
	low, high uint64
	die       uint64
}

type static struct {
	addr, die uint64
}

// scope is a DIE that qualifies the names of its children.
type scope struct {
	start, end uint64
	die        uint64
	parent     int32 // -1 for none
}

// tableBuilder is the state of the walk. open holds, for each level of
// nesting, the scope that was opened there or -1.
type tableBuilder struct {
	unit  *unit
	table *unitTable
	open  []int32
	scope int32
}

func (u *unit) buildTable() (*unitTable, error) {
	w, err := u.walk(u.first)
	if err != nil {
		return nil, err
	}
	b := &tableBuilder{unit: u, table: &unitTable{}, scope: -1}
	var e entry
	for w.next(&e) {
		if e.abbrev == nil {
			b.close(e.next)
			if len(b.open) == 0 {
				break
			}
			continue
		}
		opened := int32(-1)
		if e.abbrev.notable {
			if opened, err = b.note(&e); err != nil {
				return nil, err
			}
		}
		if !e.abbrev.children {
			continue
		}
		if skippable(&e) {
			if !w.skipChildren(&e) {
				break
			}
			continue
		}
		b.open = append(b.open, opened)
		if opened >= 0 {
			b.scope = opened
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	b.finish()
	return b.table, nil
}

// skippable DIEs hold nothing for the table.
func skippable(e *entry) bool {
	switch e.abbrev.tag {
	case dwarf.TagArrayType, dwarf.TagSubroutineType, dwarf.TagEnumerationType, dwarf.TagCallSite, tagGNUCallSite:
		return true
	case dwarf.TagSubprogram:
		return e.abbrev.has(dwarf.AttrDeclaration)
	}
	return false
}

const (
	tagGNUCallSite          dwarf.Tag = 0x4109
	tagGNUCallSiteParameter dwarf.Tag = 0x410a
)

// note enters a DIE and returns the scope it opens, or -1.
func (b *tableBuilder) note(e *entry) (int32, error) {
	switch e.tag() {
	case dwarf.TagVariable:
		b.noteVariable(e)
		return -1, nil
	case dwarf.TagSubprogram:
		ranges, err := e.ranges()
		if err != nil {
			return -1, err
		}
		for _, r := range ranges {
			b.table.functions = append(b.table.functions, functionRange{r[0], r[1], e.off})
		}
	}
	if !e.abbrev.children || skippable(e) {
		return -1, nil
	}
	b.table.scopes = append(b.table.scopes, scope{start: uint64(e.next), end: b.unit.end, die: e.off, parent: b.scope})
	return int32(len(b.table.scopes) - 1), nil
}

// close ends the innermost level of nesting.
func (b *tableBuilder) close(end int) {
	if len(b.open) == 0 {
		return
	}
	n := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	if n >= 0 {
		b.table.scopes[n].end = uint64(end)
		b.scope = b.table.scopes[n].parent
	}
}

func (b *tableBuilder) noteVariable(e *entry) {
	v, ok := e.attr(dwarf.AttrLocation)
	if !ok {
		return
	}
	addr, tls, ok := staticAddress(v)
	switch {
	case !ok:
	case tls:
		b.table.locals = append(b.table.locals, static{addr, e.off})
	case addr != 0:
		b.table.statics = append(b.table.statics, static{addr, e.off})
	}
}

// DWARF operations that place a variable at a fixed address or at a fixed
// offset in the thread-local block.
const (
	opAddr           = 0x03
	opConst4u        = 0x0c
	opConst8u        = 0x0e
	opFormTLSAddress = 0x9b
	opAddrx          = 0xa1
	opConstx         = 0xa2
	opGNUPushTLS     = 0xe0
	opGNUAddrIndex   = 0xfb
	opGNUConstIndex  = 0xfc
)

// staticAddress reads a location that consists only of a static address, or of
// an offset in the thread-local block.
func staticAddress(v value) (addr uint64, tls, ok bool) {
	b := v.block
	if len(b) < 2 || v.isOffset() {
		return 0, false, false
	}
	r := reader{data: b, pos: 1}
	var err error
	switch b[0] {
	case opAddr, opConst8u:
		addr = r.u64()
	case opConst4u:
		addr = uint64(r.u32())
	case opAddrx, opGNUAddrIndex, opConstx, opGNUConstIndex:
		addr, err = v.unit.indexedAddr(r.uleb())
	default:
		return 0, false, false
	}
	if r.bad || err != nil {
		return 0, false, false
	}
	rest := b[r.pos:]
	if len(rest) == 0 {
		return addr, false, b[0] == opAddr || b[0] == opAddrx || b[0] == opGNUAddrIndex
	}
	tls = len(rest) == 1 && (rest[0] == opFormTLSAddress || rest[0] == opGNUPushTLS)
	return addr, tls, tls
}

func (b *tableBuilder) finish() {
	t := b.table
	sort.SliceStable(t.functions, func(i, j int) bool { return t.functions[i].low < t.functions[j].low })
	sort.SliceStable(t.statics, func(i, j int) bool { return t.statics[i].addr < t.statics[j].addr })
	sort.SliceStable(t.locals, func(i, j int) bool { return t.locals[i].addr < t.locals[j].addr })
}

// functionAt returns the DIE of the function whose range covers pc: the one
// with the highest start, which is the innermost of nested functions.
func (t *unitTable) functionAt(pc uint64) (uint64, bool) {
	n := sort.Search(len(t.functions), func(i int) bool { return t.functions[i].low > pc })
	// ranges of functions hardly overlap; the bound is for hostile tables
	for i := n - 1; i >= 0 && i >= n-4096; i-- {
		if pc < t.functions[i].high {
			return t.functions[i].die, true
		}
	}
	return 0, false
}

// scopeAt returns the innermost scope around a DIE that is not the DIE
// itself; -1 for the unit.
func (t *unitTable) scopeAt(die uint64) int32 {
	n := sort.Search(len(t.scopes), func(i int) bool { return t.scopes[i].start > die })
	for i := int32(n - 1); i >= 0; i = t.scopes[i].parent {
		if die < t.scopes[i].end {
			return i
		}
	}
	return -1
}

func find(list []static, addr uint64) (uint64, bool) {
	n := sort.Search(len(list), func(i int) bool { return list[i].addr >= addr })
	if n == len(list) || list[n].addr != addr {
		return 0, false
	}
	return list[n].die, true
}

// addressPattern is how an expression names an address.
func addressPattern(addr uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{opAddr}, addr)
}
