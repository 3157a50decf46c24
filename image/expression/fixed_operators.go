package expression

import (
	"bytes"

	"diagnose/image/debuginfo"
	"diagnose/image/formula"
)

var comparisons = map[string]formula.Kind{"==": formula.Equal, "!=": formula.NotEqual, "<": formula.Less, "<=": formula.LessEqual,
	">": formula.Greater, ">=": formula.GreaterEqual}

var arithmetic = map[string]formula.Kind{"+": formula.Add, "-": formula.Subtract, "*": formula.Multiply, "&": formula.And, "|": formula.Or,
	"^": formula.Xor, "/": formula.Divide, "%": formula.Remainder}

func (x *fixing) binary(n *binaryNode) (fixed, bool) {
	if text, is := n.right.(*literalText); is {
		return x.compareText(n.op, n.left, text.text)
	}
	if text, is := n.left.(*literalText); is {
		return x.compareText(n.op, n.right, text.text)
	}
	left, ok := x.fix(n.left)
	if !ok {
		return fixed{}, false
	}
	right, ok := x.fix(n.right)
	if !ok {
		return fixed{}, false
	}
	a, p, ok := x.load(left)
	if !ok {
		return fixed{}, false
	}
	b, q, ok := x.load(right)
	switch {
	case !ok:
		return fixed{}, false
	case a.class == pointer || b.class == pointer:
		return pointersFixed(n.op, a, b, p, q)
	case n.op == "<<" || n.op == ">>":
		return shiftFixed(n.op, a, p, q), true
	}
	t := common(a.promoted(), b.promoted())
	p, q = formula.Extended(p, t.size, t.signed), formula.Extended(q, t.size, t.signed)
	if kind, known := comparisons[n.op]; known {
		return made(intType, &formula.Node{Kind: kind, Signed: t.signed, A: p, B: q}), true
	}
	kind, known := arithmetic[n.op]
	if !known {
		return fixed{}, false
	}
	return number(t, &formula.Node{Kind: kind, Signed: t.signed, A: p, B: q}), true
}

// shiftFixed is evaluation.shift.
func shiftFixed(op string, a scalar, p, q *formula.Node) fixed {
	t := a.promoted()
	kind := formula.ShiftRight
	if op == "<<" {
		kind = formula.ShiftLeft
	}
	return number(t, &formula.Node{Kind: kind, Size: int(t.size), Signed: t.signed, A: formula.Extended(p, t.size, t.signed), B: q})
}

// pointersFixed is evaluation.pointers.
func pointersFixed(op string, a, b scalar, p, q *formula.Node) (fixed, bool) {
	if kind, known := comparisons[op]; known {
		return made(intType, formula.Of(kind, p, q)), true
	}
	switch {
	case op == "+" && a.class == integer:
		return movedFixed(b, q, p)
	case op == "+" && b.class == integer:
		return movedFixed(a, p, q)
	case op == "-" && b.class == integer:
		return movedFixed(a, p, formula.Of(formula.Subtract, formula.Number(0), q))
	case op == "-" && a.class == pointer:
		size, other := sizeOfTarget(a.typ), sizeOfTarget(b.typ)
		distance := &formula.Node{Kind: formula.Divide, Signed: true, A: formula.Of(formula.Subtract, p, q), B: formula.Number(uint64(size))}
		return number(longType, distance), size > 0 && size == other
	}
	return fixed{}, false
}

// movedFixed is evaluation.moved.
func movedFixed(a scalar, p, by *formula.Node) (fixed, bool) {
	elem := a.typ.Elem()
	if elem == nil {
		elem = charType
	}
	at, ok := offset(p, elem, by)
	return made(a.typ, at), ok
}

func sizeOfTarget(t debuginfo.Type) int64 {
	if elem := t.Elem(); elem != nil {
		return elem.Size()
	}
	return 1
}

// compareText is evaluation.compareText for short texts.
func (x *fixing) compareText(op string, n node, text []byte) (fixed, bool) {
	const longest, page = 64, 4096
	f, ok := x.fix(n)
	if !ok || op != "==" && op != "!=" || len(text) > longest || bytes.IndexByte(text, 0) >= 0 {
		return fixed{}, false
	}
	t := f.Type
	if t == nil || t.Kind() != debuginfo.KindPointer && t.Kind() != debuginfo.KindArray || t.Elem() == nil || t.Elem().Size() != 1 {
		return fixed{}, false
	}
	_, at, ok := x.load(f)
	want, last := append(bytes.Clone(text), 0), int64(len(text))
	if t.Kind() == debuginfo.KindArray {
		size := t.Size()
		if size < int64(len(text)) || size < 1 || size > page {
			return fixed{}, false
		}
		want, last = want[:min(size, int64(len(want)))], size-1
	}
	// evaluation.compareText has no value if any of the bytes cannot be read, so the last one is read first. The others are on its page
	// or on the page of the first.
	equal := equalBytes(at, want)
	read := formula.Of(formula.Or, loadOf(formula.Plus(at, last), 1), formula.Number(1))
	if op == "!=" {
		equal = formula.Of(formula.Equal, equal, formula.Number(0))
	}
	return made(intType, &formula.Node{Kind: formula.Choose, A: read, B: equal, C: formula.Number(0)}), ok
}

// equalBytes is whether memory has these bytes.
func equalBytes(at *formula.Node, want []byte) *formula.Node {
	size := 8
	for size > len(want) {
		size /= 2
	}
	equal := formula.Of(formula.Equal, loadOf(at, int64(size)), formula.Number(littleEndian(want[:size])))
	if size == len(want) {
		return equal
	}
	return formula.Of(formula.Both, equal, equalBytes(formula.Plus(at, int64(size)), want[size:]))
}
