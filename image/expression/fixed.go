package expression

import (
	"diagnose/image/debuginfo"
	"diagnose/image/formula"
	"diagnose/image/value"
)

// Fixed is an expression as formulas that hold whenever a thread is at a place.
type Fixed struct {
	Type debuginfo.Type
	// Address is that of an object in memory; nil: Value has the bytes, the lowest first.
	Address *formula.Node
	Value   *formula.Node
}

// Fix makes formulas of an expression that Check accepts. frame is the canonical frame address at the place; nil: it is not known. ok is
// false if some part is not simple: a variable whose location has several parts or is computed in a rare way, floating-point arithmetic,
// a long text, a structure in registers, a variable of another object.
func (e *Expr) Fix(p *Place, frame *formula.Node) (f Fixed, ok bool) {
	x, ok := newFixing(p, frame).fix(e.root)
	if !ok || x.Type == nil {
		return Fixed{}, false
	}
	if x.field != nil {
		v, ok := x.bits()
		return Fixed{Type: x.Type, Value: v}, ok
	}
	return x.Fixed, true
}

// FixTruth makes the formula of a condition: it is not zero where the condition holds.
func (e *Expr) FixTruth(p *Place, frame *formula.Node) (*formula.Node, bool) {
	return newFixing(p, frame).truth(e.root)
}

// fixing makes formulas of an expression at one place.
type fixing struct {
	place *Place
	point value.CodePoint
	// dry computes types.
	dry *evaluation
}

func newFixing(p *Place, frame *formula.Node) *fixing {
	return &fixing{p, value.CodePoint{Module: p.module, Frame: frame}, &evaluation{scope: p.Dry(), dry: true}}
}

// fixed is what a part of an expression stands for.
type fixed struct {
	Fixed
	// field is set for a bit field of the structure at Address.
	field *debuginfo.Member
}

func (x *fixing) fix(n node) (fixed, bool) {
	switch n := n.(type) {
	case *name:
		return x.name(n)
	case *constant:
		return made(n.typ, formula.Number(n.bits)), true
	case *member:
		return x.member(n)
	case *element:
		return x.element(n)
	case *unary:
		return x.unary(n)
	case *logic, *choice:
		return x.chosen(n)
	case *operandSize, *typeSize:
		return x.size(n)
	case *cast:
		return x.cast(n)
	case *binaryNode:
		return x.binary(n)
	}
	return fixed{}, false
}

func made(t debuginfo.Type, v *formula.Node) fixed { return fixed{Fixed: Fixed{Type: t, Value: v}} }

func located(t debuginfo.Type, at *formula.Node) fixed {
	return fixed{Fixed: Fixed{Type: t, Address: at}}
}

// number returns an integer of a type, cut to it.
func number(t *basicType, v *formula.Node) fixed {
	return made(t, formula.Extended(v, t.size, t.signed))
}

// settle follows a reference of C++, as evaluation.settle does.
func (x *fixing) settle(f fixed) (fixed, bool) {
	t := f.Type
	if t == nil || t.Kind() != debuginfo.KindPointer || !t.Reference() {
		return f, t != nil
	}
	_, v, ok := x.load(f)
	return located(t.Elem(), v), ok
}

func (x *fixing) name(n *name) (fixed, bool) {
	f, found, ok := x.variable(n.name)
	switch {
	case found && !ok:
		return fixed{}, false
	case found:
		return x.settle(f)
	}
	if c, known := namedConstants[n.name]; known {
		return made(c.typ, formula.Number(c.bits)), true
	}
	if this, found, ok := x.variable("this"); found && ok {
		return x.memberOf(this, n.name, true)
	}
	return fixed{}, false
}

// variable returns what a name stands for.
func (x *fixing) variable(name string) (f fixed, found, ok bool) {
	if x.place.unplaced[name] {
		return fixed{}, true, false
	}
	if v, local := x.place.locals[name]; local {
		f, ok := x.stored(v)
		return f, true, ok
	}
	m, err := x.place.find(name)
	switch {
	case err != nil || m == nil:
		return fixed{}, err != nil, false
	case m.constant != nil:
		return made(m.typ, formula.Number(littleEndian(m.constant))), true, len(m.constant) <= 8
	case m.module != x.place.module: // it may be loaded elsewhere at times
		return fixed{}, true, false
	}
	f, ok = x.stored(m.variable)
	return f, true, ok
}

func (x *fixing) stored(v debuginfo.Variable) (fixed, bool) {
	if v.Type == nil {
		return fixed{}, false
	}
	at, ok := x.point.Fix(v)
	if !ok {
		return fixed{}, false
	}
	// One register holds all of it.
	if size := v.Type.Size(); at.Value != nil && (size <= 0 || size > 8) {
		return fixed{}, false
	}
	return fixed{Fixed: Fixed{Type: v.Type, Address: at.Address, Value: at.Value}}, true
}

func (x *fixing) member(n *member) (fixed, bool) {
	of, ok := x.fix(n.of)
	if !ok {
		return fixed{}, false
	}
	return x.memberOf(of, n.name, n.arrow)
}

func (x *fixing) memberOf(of fixed, name string, arrow bool) (fixed, bool) {
	if arrow {
		var ok bool
		if of, ok = x.pointee(of); !ok {
			return fixed{}, false
		}
	}
	t := of.Type
	if t == nil || t.Kind() != debuginfo.KindStruct && t.Kind() != debuginfo.KindUnion || of.Address == nil {
		return fixed{}, false
	}
	m, _, found := value.FindMember(t, name)
	if !found {
		return fixed{}, false
	}
	if m.BitSize != 0 {
		return fixed{Fixed: Fixed{Type: m.Type, Address: of.Address}, field: &m}, m.Type != nil
	}
	return x.settle(located(m.Type, formula.Plus(of.Address, m.Offset)))
}

// pointee returns what a pointer points to, or the first element of an array.
func (x *fixing) pointee(f fixed) (fixed, bool) {
	t := f.Type
	switch {
	case t == nil || t.Kind() != debuginfo.KindPointer && t.Kind() != debuginfo.KindArray || t.Elem() == nil:
		return fixed{}, false
	case t.Kind() == debuginfo.KindArray:
		return located(t.Elem(), f.Address), f.Address != nil
	}
	_, v, ok := x.load(f)
	return located(t.Elem(), v), ok
}

func (x *fixing) element(n *element) (fixed, bool) {
	of, ok := x.fix(n.of)
	if !ok {
		return fixed{}, false
	}
	index, ok := x.fix(n.index)
	if !ok {
		return fixed{}, false
	}
	if !indexable(of.Type) && indexable(index.Type) {
		of, index = index, of
	}
	s, by, ok := x.load(index)
	if !ok || s.class != integer {
		return fixed{}, false
	}
	at, ok := x.pointee(of)
	if !ok {
		return fixed{}, false
	}
	moved, ok := offset(at.Address, at.Type, by)
	if !ok {
		return fixed{}, false
	}
	return x.settle(located(at.Type, moved))
}

// offset moves an address by a number of elements, as offsetOf bounds it.
func offset(at *formula.Node, elem debuginfo.Type, by *formula.Node) (*formula.Node, bool) {
	const most = 1 << 47
	size := elem.Size()
	if size <= 0 || size > most {
		return nil, false
	}
	bounded := &formula.Node{Kind: formula.Bounded, A: by, Value: uint64(most / size)}
	return formula.Of(formula.Add, at, formula.Of(formula.Multiply, bounded, formula.Number(uint64(size)))), true
}

func (x *fixing) unary(n *unary) (fixed, bool) {
	if n.op == "!" {
		v, ok := x.truth(n.x)
		return made(intType, formula.Of(formula.Equal, v, formula.Number(0))), ok
	}
	f, ok := x.fix(n.x)
	if !ok {
		return fixed{}, false
	}
	switch n.op {
	case "*":
		if f, ok = x.pointee(f); !ok {
			return fixed{}, false
		}
		return x.settle(f)
	case "&":
		return made(pointerTo(f.Type), f.Address), f.Address != nil && f.field == nil
	}
	s, v, ok := x.load(f)
	if !ok || s.class != integer {
		return fixed{}, false
	}
	switch t := s.promoted(); n.op {
	case "-":
		return number(t, formula.Of(formula.Subtract, formula.Number(0), v)), true
	case "~":
		return number(t, formula.Of(formula.Xor, v, formula.Number(^uint64(0)))), true
	case "+":
		return number(t, v), true
	}
	return fixed{}, false
}

// chosen is an operation that computes some operands only.
func (x *fixing) chosen(n node) (fixed, bool) {
	if l, is := n.(*logic); is {
		a, ok := x.truth(l.left)
		if !ok {
			return fixed{}, false
		}
		b, ok := x.truth(l.right)
		kind := formula.Both
		if l.or {
			kind = formula.Either
		}
		return made(intType, formula.Of(kind, a, b)), ok
	}
	c := n.(*choice)
	condition, ok := x.truth(c.condition)
	if !ok {
		return fixed{}, false
	}
	yes, ok := x.fix(c.yes)
	if !ok {
		return fixed{}, false
	}
	no, ok := x.fix(c.no)
	if !ok {
		return fixed{}, false
	}
	a, one, ok := x.load(yes)
	if !ok {
		return fixed{}, false
	}
	b, other, ok := x.load(no)
	// The type is that of the operand that is chosen, so they have to agree. An object that is chosen keeps its address.
	if !ok || a.typ != b.typ || yes.Address != nil || no.Address != nil {
		return fixed{}, false
	}
	return made(a.typ, &formula.Node{Kind: formula.Choose, A: condition, B: one, C: other}), true
}

// truth is not zero where a condition holds.
func (x *fixing) truth(n node) (*formula.Node, bool) {
	f, ok := x.fix(n)
	if !ok {
		return nil, false
	}
	_, v, ok := x.load(f)
	return formula.Of(formula.NotEqual, v, formula.Number(0)), ok
}

// size is the size of an operand or a type, which is known without a process.
func (x *fixing) size(n node) (fixed, bool) {
	o, err := n.eval(x.dry)
	if err != nil {
		return fixed{}, false
	}
	data, err := o.Bytes()
	if err != nil || len(data) != 8 {
		return fixed{}, false
	}
	return made(o.Type, formula.Number(littleEndian(data))), true
}

func (x *fixing) cast(n *cast) (fixed, bool) {
	f, ok := x.fix(n.x)
	if !ok {
		return fixed{}, false
	}
	t, err := x.dry.resolve(&n.to)
	if err != nil {
		return fixed{}, false
	}
	_, v, ok := x.load(f)
	size := t.Size()
	if !ok || size <= 0 || size > 8 {
		return fixed{}, false
	}
	switch t.Kind() {
	case debuginfo.KindBool:
		return made(t, formula.Of(formula.NotEqual, v, formula.Number(0))), true
	case debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum:
		return made(t, v), true
	case debuginfo.KindPointer:
		return made(t, v), !t.Reference()
	}
	return fixed{}, false
}
