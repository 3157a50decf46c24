package staticscan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// describeValue names the bad value; an index by what was scaled.
func (t *originSearch) describeValue(s *backwardSlice, n *node, role Role) {
	whole := n
	n, t.blame.Role = s.badTerm(n, role)
	t.bad = n
	role = t.blame.Role
	if terms, _ := linear(whole); role == RoleIndex {
		if i := s.pointerTerm(terms); i >= 0 && terms[i].node != n && s.still(terms[i].node, 0) {
			if v, ok := terms[i].node.best(); ok {
				t.blame.Base = addrOf(v)
			}
		}
	}
	v, known := n.best()
	if known {
		t.blame.Value = addrOf(v)
	}
	e, ok := s.describe(n, 0)
	if ok {
		t.blame.Pointer, t.blame.PointerType = e.text, typeName(e.typ)
		t.accessThrough(e)
	}
	if role == RoleIndex && known {
		if t.blame.Index = amount(v, e.typ); e.typ == nil && n.size == 4 {
			t.blame.Index = strconv.FormatInt(int64(int32(v)), 10)
		} else if e.typ == nil {
			t.blame.Index = strconv.FormatInt(int64(v), 10)
		}
	}
	if from := n.origin(); from.op == opResult {
		t.nameResult(s, from)
	}
}

// accessThrough names what a pointer without a target type (void *) leads to.
func (t *originSearch) accessThrough(e expression) {
	b := &t.blame
	if b.Role != RolePointer || !strings.HasPrefix(b.Accessed, "[") || e.typ == nil {
		return
	}
	if strings.ContainsAny(b.Accessed, "+-") {
		b.Accessed = ""
		return
	}
	b.Accessed = "*" + grouped(e.text)
}

// nameResult blames what a call returned. Without its type there are no words
// for what it points to.
func (t *originSearch) nameResult(s *backwardSlice, n *node) {
	b := &t.blame
	if name := s.calledName(n.def); name != "" {
		b.Result = lastName(name)
		b.Pointer, b.PointerType = resultOf+b.Result, ""
		if strings.HasPrefix(b.Accessed, "[") {
			b.Accessed = ""
		}
	}
}

// origin is the node whose value n has unchanged.
func (n *node) origin() *node {
	for range maxDepth {
		if n.op != opCopy || n.size < 4 || n.advanced {
			return n
		}
		n = n.a
	}
	return n
}

// badTerm finds the summand of an address that is to blame: an index by what
// was scaled; a null pointer without the offset of a member or element that
// was added to it; an index that leads away from memory which is there.
func (s *backwardSlice) badTerm(n *node, role Role) (*node, Role) {
	terms, offset := linear(n)
	if i := dominant(n, terms, offset); role == RoleIndex && i >= 0 {
		return terms[i].node, role
	}
	if i := s.beyondStatic(terms, offset); i >= 0 && role == RolePointer {
		return terms[i].node, RoleIndex
	}
	if role != RolePointer || n.op == opCopy && n.size < 8 {
		return n, role
	}
	pointer := s.pointerTerm(terms)
	if pointer < 0 {
		return n, role
	}
	base := terms[pointer].node
	if len(terms) == 1 {
		return base, role
	}
	v, known := base.best()
	switch {
	case known && !s.mapped(v):
		return base, role
	case known && len(terms) == 2 && s.mapped(v):
		if index := terms[1-pointer].node; index.hasValue() {
			return index, RoleIndex
		}
	}
	return n, role
}

// dominant is the summand of n beside which the others, taken together, hardly count;
// -1 if there is none. One whose value is not known is what the others leave.
func dominant(n *node, terms []term, offset int64) int {
	if len(terms) == 1 {
		return 0
	}
	const hardly = 16
	total, known := n.best()
	left, unknown := int64(total)-offset, -1
	sizes := make([]float64, len(terms))
	for i, t := range terms {
		v, ok := t.node.best()
		if !ok && (unknown >= 0 || !known) {
			return -1
		}
		if !ok {
			unknown = i
			continue
		}
		left -= int64(v) * t.factor
		sizes[i] = math.Abs(float64(int64(v)) * float64(t.factor))
	}
	if unknown >= 0 {
		sizes[unknown] = math.Abs(float64(left))
	}
	sum := 0.0
	for _, size := range sizes {
		sum += size
	}
	return slices.IndexFunc(sizes, func(size float64) bool { return size > 0 && size >= hardly*(sum-size) })
}

// beyondStatic is the only summand that by itself leads out of the static variable
// which an address began at; -1 if there is none.
func (s *backwardSlice) beyondStatic(terms []term, offset int64) int {
	if len(terms) == 0 || !s.isStatic(uint64(offset)) {
		return -1
	}
	g, ok := s.globalAt(evidence.Addr(offset), s.codeAt(s.now))
	if !ok || g.size == 0 {
		return -1
	}
	found := -1
	for i, t := range terms {
		v, known := t.node.best()
		if d := int64(v) * t.factor; !known || d > -int64(g.size) && d < int64(g.size) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// within reports whether n's value went into another one's.
func (n *node) within(of *node, depth int) bool {
	if of == nil || depth > maxDepth {
		return false
	}
	return n == of || n.within(of.a, depth+1) || n.within(of.b, depth+1)
}

func (n *node) hasValue() bool {
	_, ok := n.best()
	return ok
}

// pointerTerm is the index of the only summand that the program has as a
// pointer, -1 if there is none.
func (s *backwardSlice) pointerTerm(terms []term) int {
	found := -1
	for i, t := range terms {
		if t.factor != 1 {
			continue
		}
		if e, ok := s.describe(t.node, 0); ok && e.typ != nil && e.typ.Kind() == debuginfo.KindPointer {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

func (t *originSearch) describeAccess(s *backwardSlice, op *x86.Operand) {
	t.blame.Accessed = operandText(&op.Memory)
	n := s.addressOf(s.now, &op.Memory, 0)
	if e, ok := s.describePlace(n, op.Size, s.now, 0); ok {
		t.blame.Accessed, t.blame.AccessedType = e.text, typeName(e.typ)
	}
}

// amount writes a value as its type has it: integers in decimal, everything
// else, and what has no type, in hexadecimal.
func amount(v uint64, typ debuginfo.Type) string {
	if typ == nil || typ.Kind() != debuginfo.KindInt || typ.Size() < 1 || typ.Size() > 8 {
		return fmt.Sprintf("%#x", v)
	}
	signed := false
	if t, ok := typ.(interface{ Signed() bool }); ok {
		signed = t.Signed()
	}
	v = extend(v, int(typ.Size()), signed)
	if signed {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}
