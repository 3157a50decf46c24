package staticscan

import (
	"bytes"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// stores is how many bytes an instruction stores from its operand's address on, and whether
// that, or the address, varies. A compiler makes a string instruction with a constant count
// for the assignment or the initialisation of a whole object.
func (s *backwardSlice) stores(to *x86.Operand) (size int, varies bool) {
	if !to.Repeated || !to.Memory.Base.General() {
		return to.Size, false
	}
	if count, constant := s.constant(x86.RCX); constant && count > 0 && count < 1<<32 {
		return int(count) * to.Size, false
	}
	return 1, true
}

// constant is the value of a register that the code has set to a constant.
func (s *backwardSlice) constant(r x86.Reg) (int64, bool) {
	terms, value := linear(s.register(s.now, r, 0))
	return value, len(terms) == 0
}

// covers reports whether a piece holds all of an access. A compiler joins stores to
// neighbours, so one that is wider than the piece means more than that.
func (p part) covers(offset, size int64) bool { return offset+size <= p.offset+p.size }

// lengths are functions of the C library whose third argument is how many bytes they store.
var lengths = map[string]bool{"memcpy": true, "memmove": true, "mempcpy": true, "memset": true}

// meantWhole reports whether a call stores exactly a struct, by a constant length: then
// the struct is meant, and not the array that it begins with.
func (t *storeTrail) meantWhole(s *backwardSlice, to *node, name string) bool {
	length, constant := s.constant(x86.RDX)
	if !lengths[fortified(name)] || !constant || length <= 0 {
		return false
	}
	start, known := to.best()
	if !known {
		return false
	}
	at := evidence.Addr(start)
	if e, ok := s.describe(to, 0); ok && e.typ != nil && e.typ.Kind() == debuginfo.KindPointer && isStruct(e.typ.Elem(), length) {
		t.From, t.Meant, t.MeantSize = &at, "*"+grouped(e.text), uint64(length)
		return true
	}
	if v, ok := s.memoryVariable(at, s.now); ok {
		p := walk(v.Type, int64(at-v.addr), length, false)
		if isStruct(p.typ, length) {
			t.From, t.Meant, t.MeantSize = &at, v.Name+p.path, uint64(length)
			return true
		}
	}
	g, ok := t.globalAt(at, s.codeAt(s.now))
	if !ok || g.typ == nil {
		return false
	}
	p := walk(g.typ, int64(at-g.addr), length, false)
	if !isStruct(p.typ, length) {
		return false
	}
	t.From, t.Meant, t.MeantSize = &at, g.name+p.path, uint64(length)
	return true
}

func isStruct(t debuginfo.Type, size int64) bool {
	return t != nil && (t.Kind() == debuginfo.KindStruct || t.Kind() == debuginfo.KindUnion) && t.Size() == size
}

// copiedByString is for movs, repeated or not: both pointers have moved on by as much, so
// their distance is that of the bytes.
func (t *storeTrail) copiedByString(s *backwardSlice) bool {
	to, known := s.frame.Registers.Get(image.RDI)
	from, also := s.frame.Registers.Get(image.RSI)
	if !known || !also {
		return false
	}
	at, size := t.addr, 1
	if n := len(t.word.Data); n > 0 && t.word.Addr <= t.addr && t.addr < t.word.end() {
		at, size = t.word.Addr, n
	}
	cell := at + evidence.Addr(from-to)
	step := t.step(s, s.now, evidence.OriginCell)
	step.Cell, step.Text, step.Proof = &cell, fmt.Sprintf("it was copied from %v", cell), evidence.FromCore
	b := &t.blame
	if e, ok := s.describe(s.register(s.now, x86.RSI, 0), 0); ok {
		step.Symbol, step.Type = e.text, typeName(e.typ)
	}
	b.Cell, b.CellSize, b.Loaded = &cell, size, t.blame.Site
	copied, source := make([]byte, size), make([]byte, size)
	_, err := t.in.Process.ReadMemory(at, copied)
	_, other := t.in.Process.ReadMemory(cell, source)
	b.CellHolds = err == nil && other == nil && bytes.Equal(copied, source)
	t.add(step)
	return true
}
