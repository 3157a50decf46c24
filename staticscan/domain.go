package staticscan

import "diagnose/evidence"

// kind is what the flow knows of a value.
type kind uint8

const (
	unknown  kind = iota
	absolute      // the number value.off, an address or a constant
	stack         // value.off from the stack pointer that value.base names
	loaded        // the content of value.cell plus value.off
	entered       // value.off more than the register value.base had at the function's entry
)

// value is an abstract 64-bit value. Values are comparable.
type value struct {
	kind kind
	// varies: something unknown, such as a scaled index, was added.
	varies bool
	// base of a stack value: 0 is the stack pointer at the function's entry,
	// else the address of the instruction that set it anew (and rsp, -32). Of an
	// entered value, the register.
	base uint64
	off  int64
	cell *cell
}

// cell is a memory cell whose content was used as a pointer. Cells are
// interned by at.
type cell struct {
	at value // its address: absolute, or loaded itself
	// content is what the stopped process holds there.
	content uint64
	hops    int
}

// address returns the number that the value is in the stopped process;
// for a varying value that of its anchor.
func (v value) address() (evidence.Addr, bool) {
	switch v.kind {
	case absolute:
		return evidence.Addr(v.off), true
	case loaded:
		return evidence.Addr(v.cell.content + uint64(v.off)), true
	}
	return 0, false
}

func number(n uint64) value { return value{kind: absolute, off: int64(n)} }

func (v value) constant() (int64, bool) { return v.off, v.kind == absolute && !v.varies }

// add is a+b. An address plus something unknown varies; isData tells an
// address from a plain number.
func add(a, b value, isData func(uint64) bool) value {
	if b.kind != absolute || a.kind == absolute && b.varies {
		a, b = b, a
	}
	switch {
	case a.kind == unknown && b.kind == absolute:
		if !isData(uint64(b.off)) {
			return value{}
		}
		b.varies = true
		return b
	case b.kind == absolute && a.kind == absolute && isData(uint64(b.off)) && a.varies && !isData(uint64(a.off)):
		b.varies = true
		b.off += a.off
		return b
	case b.kind == absolute:
		a.off += b.off
		a.varies = a.varies || b.varies
		return a
	case a.kind == unknown && b.kind != unknown:
		b.varies = true
		return b
	case b.kind == unknown && a.kind != unknown:
		a.varies = true
		return a
	}
	return value{}
}

// scale is v*factor.
func scale(v value, factor int64) value {
	if factor == 1 {
		return v
	}
	if n, ok := v.constant(); ok {
		return number(uint64(n * factor))
	}
	return value{}
}

// slot is a word of the stack frame that holds a known value.
type slot struct {
	base  uint64
	off   int64
	value value
}

// state is what is known before an instruction.
type state struct {
	regs    [16]value
	slots   []slot // sorted by nothing; few
	reached bool
}

// maxSlots bounds the stack words followed in a function: only those with an
// interesting value are kept, so that real code stays far below it.
const maxSlots = 128

func (s *state) clone() state {
	c := *s
	c.slots = append([]slot(nil), s.slots...)
	return c
}

func (s *state) slot(at value) value {
	if at.kind != stack || at.varies {
		return value{}
	}
	for i := range s.slots {
		if s.slots[i].base == at.base && s.slots[i].off == at.off {
			return s.slots[i].value
		}
	}
	return value{}
}

// store forgets what overlaps the size bytes at a stack address and keeps v
// there if it is a whole word. A size of 0 stands for an unknown one.
func (s *state) store(at, v value, size int) {
	if at.kind != stack {
		return
	}
	if at.varies || size <= 0 {
		size = 8
	}
	kept := s.slots[:0]
	for _, old := range s.slots {
		if old.base != at.base || old.off+8 <= at.off || old.off >= at.off+int64(size) {
			kept = append(kept, old)
		}
	}
	s.slots = kept
	if v.kind != unknown && size == 8 && !at.varies && len(s.slots) < maxSlots {
		s.slots = append(s.slots, slot{base: at.base, off: at.off, value: v})
	}
}

// join merges what another path knows into s and reports whether s changed.
func (s *state) join(other *state, same func(a, b uint64) bool) bool {
	if !s.reached {
		*s = other.clone()
		s.reached = true
		return true
	}
	changed := false
	for r := range s.regs {
		v := joinValue(s.regs[r], other.regs[r], same)
		changed = changed || v != s.regs[r]
		s.regs[r] = v
	}
	kept := s.slots[:0]
	for _, old := range s.slots {
		at := value{kind: stack, base: old.base, off: old.off}
		v := joinValue(old.value, other.slot(at), same)
		changed = changed || v != old.value
		if v.kind != unknown {
			old.value = v
			kept = append(kept, old)
		}
	}
	s.slots = kept
	return changed
}

// joinValue keeps the anchor of the older value, so that repeated joins come
// to rest: exact, then varying, then unknown. same reports whether two
// addresses belong to one variable.
func joinValue(old, now value, same func(a, b uint64) bool) value {
	if old == now {
		return old
	}
	if old.kind != now.kind || old.base != now.base || old.cell != now.cell {
		return value{}
	}
	if old.kind == absolute && !same(uint64(old.off), uint64(now.off)) {
		return value{}
	}
	old.varies = true
	return old
}
