package expression

import (
	"diagnose/image/debuginfo"
	"diagnose/image/formula"
	"diagnose/image/value"
)

// bits is the value of a bit field, widened.
func (x *fixed) bits() (*formula.Node, bool) {
	m := x.field
	size := m.Type.Size()
	if m.BitSize <= 0 || m.BitSize > 64 || m.BitOffset < 0 || m.BitOffset > 1<<20 || size <= 0 || size > 8 || m.BitSize > size*8 {
		return nil, false
	}
	shift := m.BitOffset % 8
	n := (shift + m.BitSize + 7) / 8
	if n > 8 {
		return nil, false
	}
	v := formula.Of(formula.ShiftLeft, loadOf(formula.Plus(x.Address, m.Offset+m.BitOffset/8), n), formula.Number(uint64(64-shift-m.BitSize)))
	right := formula.Of(formula.ShiftRight, v, formula.Number(uint64(64-m.BitSize)))
	v.Size, right.Size, right.Signed = 8, 8, value.Signed(m.Type)
	return right, true
}

// loadOf returns 1 to 8 bytes of memory, without a sign.
func loadOf(at *formula.Node, size int64) *formula.Node {
	for _, part := range []int64{8, 4, 2, 1} {
		if part > size {
			continue
		}
		low := &formula.Node{Kind: formula.Load, Size: int(part), A: at}
		if part == size {
			return low
		}
		high := formula.Of(formula.ShiftLeft, loadOf(formula.Plus(at, part), size-part), formula.Number(uint64(8*part)))
		high.Size = 8
		return formula.Of(formula.Or, low, high)
	}
	return formula.Number(0)
}

// load returns the value of an operand, extended to 64 bits, as evaluation.load does. Floating-point numbers have none here.
func (x *fixing) load(f fixed) (s scalar, v *formula.Node, ok bool) {
	t := f.Type
	if t == nil {
		return s, nil, false
	}
	if k := t.Kind(); k == debuginfo.KindArray || k == debuginfo.KindFunc {
		elem := t
		if k == debuginfo.KindArray {
			elem = t.Elem()
		}
		return scalar{class: pointer, typ: pointerTo(elem), size: 8}, f.Address, f.Address != nil
	}
	s = scalar{typ: t, size: t.Size()}
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum:
		s.signed = value.Signed(t)
	case debuginfo.KindPointer:
		s.class = pointer
	default:
		return s, nil, false
	}
	if s.size <= 0 || s.size > 8 || s.class == pointer && s.size != 8 {
		return s, nil, false
	}
	switch {
	case f.field != nil:
		s.width = f.field.BitSize
		v, ok = f.bits()
		return s, v, ok
	case f.Address == nil:
		return s, formula.Extended(f.Value, s.size, s.signed), true
	case s.size&(s.size-1) != 0:
		return s, nil, false
	}
	return s, &formula.Node{Kind: formula.Load, Size: int(s.size), Signed: s.signed, A: f.Address}, true
}
