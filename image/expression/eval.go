package expression

import (
	"errors"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// Scope is the place of a program where an expression is evaluated.
type Scope interface {
	// Variable returns what a name stands for: a variable, an enumerator or a function. found is
	// false if it is unknown. The errors are those of value.ObjectOf.
	Variable(name string) (o value.Object, found bool, err error)
	// Type returns the program's type of a name, as debuginfo.Info.TypeNamed takes it.
	Type(name string) (debuginfo.Type, bool)
	// Memory is what pointers lead to.
	Memory() image.Memory
}

// Eval evaluates the expression. The object is read only as far as its value was needed: the
// caller reads it. The errors are *NameError, *TypeError, *ValueError, *value.UnavailableError,
// *image.MemoryError, or those of reading debug information.
func (e *Expr) Eval(s Scope) (value.Object, error) {
	ev := &evaluation{scope: s}
	x, err := e.root.eval(ev)
	if err != nil {
		return value.Object{}, err
	}
	return ev.objectOf(x), nil
}

// True evaluates the expression as a condition.
func (e *Expr) True(s Scope) (bool, error) {
	return (&evaluation{scope: s}).truth(e.root)
}

// Check reports an error that the expression has whatever the values are: a *NameError or a
// *TypeError. Nothing is read, so the scope's variables need no memory.
func (e *Expr) Check(s Scope) error {
	_, err := e.root.eval(&evaluation{scope: s, dry: true})
	return err
}

// evaluation evaluates one expression once.
type evaluation struct {
	scope Scope
	// dry: values are not read but taken to be 0, and every operand is evaluated.
	dry bool
}

// operand is what a part of an expression stands for.
type operand struct {
	value.Object
	// text is a string literal; nil: it is none.
	text []byte
}

// objectOf makes an object of an operand.
func (e *evaluation) objectOf(x operand) value.Object {
	if x.text == nil {
		return x.Object
	}
	data := append(append([]byte{}, x.text...), 0)
	t := &basicType{name: "char []", kind: debuginfo.KindArray, size: int64(len(data)), elem: charType, count: int64(len(data))}
	return value.ObjectFrom(e.scope.Memory(), data, t)
}

// settle follows a reference of C++: its name stands for the object.
func (e *evaluation) settle(o value.Object) (operand, error) {
	t := o.Type
	if t == nil || t.Kind() != debuginfo.KindPointer || !t.Reference() {
		return operand{Object: o}, nil
	}
	p, err := e.load(operand{Object: o})
	if err != nil {
		return operand{}, err
	}
	return operand{Object: value.ObjectAt(e.scope.Memory(), evidence.Addr(p.bits), t.Elem())}, nil
}

type name struct{ name string }

func (n *name) eval(e *evaluation) (operand, error) {
	o, found, err := e.scope.Variable(n.name)
	if err != nil {
		return operand{}, err
	}
	if found {
		return e.settle(o)
	}
	if x, known := namedConstants[n.name]; known {
		return x.eval(e)
	}
	// A method of C++ names the members of its object alone.
	this, found, err := e.scope.Variable("this")
	switch {
	case err != nil:
		return operand{}, err
	case found:
		if x, err := e.member(operand{Object: this}, n.name, true); err == nil || !isNameError(err) {
			return x, err
		}
	}
	return operand{}, &NameError{Name: n.name}
}

func isNameError(err error) bool {
	var name *NameError
	return errors.As(err, &name)
}

// namedConstants are those of C11 7.18, 7.19 and of C++.
var namedConstants = map[string]*constant{
	"true": {ownTypes["bool"], 1}, "false": {ownTypes["bool"], 0}, "NULL": {pointerTo(nil), 0}, "nullptr": {pointerTo(nil), 0},
}

// constant is a number; bits are those of the type.
type constant struct {
	typ  *basicType
	bits uint64
}

func (n *constant) eval(e *evaluation) (operand, error) { return e.made(n.typ, n.bits), nil }

type literalText struct{ text []byte }

func (n *literalText) eval(*evaluation) (operand, error) {
	return operand{text: append([]byte{}, n.text...)}, nil
}

type member struct {
	of    node
	name  string
	arrow bool
}

func (n *member) eval(e *evaluation) (operand, error) {
	x, err := n.of.eval(e)
	if err != nil {
		return x, err
	}
	return e.member(x, n.name, n.arrow)
}

func (e *evaluation) member(x operand, name string, arrow bool) (operand, error) {
	if arrow {
		var err error
		if x, err = e.pointee(x); err != nil {
			return x, err
		}
	}
	t := x.Type
	if t == nil || t.Kind() != debuginfo.KindStruct && t.Kind() != debuginfo.KindUnion {
		if !arrow && t != nil && t.Kind() == debuginfo.KindPointer {
			return x, typeProblem("%s is a pointer: its members are taken by ->", typeText(t))
		}
		return x, typeProblem("%s has no members", typeText(t))
	}
	m, known, found := value.FindMember(t, name)
	if !found {
		return x, &NameError{Name: name, Of: typeText(t), Known: known}
	}
	return e.settle(x.Member(m))
}

// pointee returns what a pointer points to, or the first element of an array.
func (e *evaluation) pointee(x operand) (operand, error) {
	t := x.Type
	if x.text != nil || t == nil || t.Kind() != debuginfo.KindPointer && t.Kind() != debuginfo.KindArray && t.Kind() != debuginfo.KindFunc {
		return x, typeProblem("%s is no pointer", typeText(t))
	}
	if t.Kind() == debuginfo.KindFunc {
		return x, nil // C11, 6.5.3.2
	}
	elem := t.Elem()
	if elem == nil {
		return x, typeProblem("%s points to nothing that is known: cast it to another type", typeText(t))
	}
	if t.Kind() == debuginfo.KindArray {
		return operand{Object: x.At(0, elem)}, nil
	}
	p, err := e.load(x)
	if err != nil {
		return x, err
	}
	return operand{Object: value.ObjectAt(e.scope.Memory(), evidence.Addr(p.bits), elem)}, nil
}

type element struct{ of, index node }

func (n *element) eval(e *evaluation) (operand, error) {
	x, err := n.of.eval(e)
	if err != nil {
		return x, err
	}
	y, err := n.index.eval(e)
	if err != nil {
		return y, err
	}
	if !indexable(x.Type) && indexable(y.Type) {
		x, y = y, x // C11, 6.5.2.1: 2[array]
	}
	index, err := e.load(y)
	if err != nil {
		return y, err
	}
	if index.class != integer {
		return y, typeProblem("an index is %s", typeText(y.Type))
	}
	x, err = e.pointee(x)
	if err != nil {
		return x, err
	}
	offset, err := offsetOf(x.Type, int64(index.bits))
	if err != nil {
		return x, err
	}
	return e.settle(x.At(offset, x.Type))
}

func indexable(t debuginfo.Type) bool {
	return t != nil && (t.Kind() == debuginfo.KindPointer || t.Kind() == debuginfo.KindArray)
}

// offsetOf returns the offset in bytes of an element. Offsets are bounded so that sums of them
// cannot overflow.
func offsetOf(elem debuginfo.Type, index int64) (int64, error) {
	const most = 1 << 47 // the address space of the program
	size := elem.Size()
	if size <= 0 || size > most {
		return 0, typeProblem("the size of %s is not known", typeText(elem))
	}
	if index > most/size || index < -most/size {
		return 0, valueProblem("the index %d is outside of all memory", index)
	}
	return index * size, nil
}

type unary struct {
	op string
	x  node
}

func (n *unary) eval(e *evaluation) (operand, error) {
	if n.op == "!" {
		yes, err := e.truth(n.x)
		return e.truthValue(!yes), err
	}
	x, err := n.x.eval(e)
	if err != nil {
		return x, err
	}
	switch n.op {
	case "*":
		x, err := e.pointee(x)
		if err != nil {
			return x, err
		}
		return e.settle(x.Object)
	case "&":
		return e.addressOf(x)
	}
	s, err := e.load(x)
	if err != nil {
		return x, err
	}
	return e.negated(n.op, s)
}

func (e *evaluation) addressOf(x operand) (operand, error) {
	at, ok := x.Address()
	if !ok {
		return x, typeProblem("the operand of & is in no memory")
	}
	return e.made(pointerTo(x.Type), uint64(at)), nil
}

type logic struct {
	or          bool
	left, right node
}

func (n *logic) eval(e *evaluation) (operand, error) {
	yes, err := e.truth(n.left)
	if err != nil || yes == n.or && !e.dry {
		return e.truthValue(yes), err
	}
	yes, err = e.truth(n.right)
	return e.truthValue(yes), err
}

type choice struct{ condition, yes, no node }

func (n *choice) eval(e *evaluation) (operand, error) {
	first, err := e.truth(n.condition)
	if err != nil {
		return operand{}, err
	}
	if e.dry {
		if x, err := n.no.eval(e); err != nil {
			return x, err
		}
	}
	if first || e.dry {
		return n.yes.eval(e)
	}
	return n.no.eval(e)
}

func (e *evaluation) truth(n node) (bool, error) {
	x, err := n.eval(e)
	if err != nil {
		return false, err
	}
	s, err := e.load(x)
	if err != nil {
		return false, err
	}
	if s.class == floating {
		return s.float != 0, nil
	}
	return s.bits != 0, nil
}

func (e *evaluation) truthValue(yes bool) operand {
	if yes {
		return e.made(intType, 1)
	}
	return e.made(intType, 0)
}

type operandSize struct{ x node }

func (n *operandSize) eval(e *evaluation) (operand, error) {
	x, err := n.x.eval(&evaluation{scope: e.scope, dry: true}) // it is not evaluated (C11, 6.5.3.4)
	if err != nil {
		return x, err
	}
	return e.sizeOf(e.objectOf(x).Type)
}

type typeSize struct{ to *typeName }

func (n *typeSize) eval(e *evaluation) (operand, error) {
	t, err := e.resolve(n.to)
	if err != nil {
		return operand{}, err
	}
	return e.sizeOf(t)
}

func (e *evaluation) sizeOf(t debuginfo.Type) (operand, error) {
	if t == nil || t.Size() <= 0 {
		return operand{}, typeProblem("the size of %s is not known", typeText(t))
	}
	return e.made(ulongType, uint64(t.Size())), nil
}

// resolve finds the type that an expression names.
func (e *evaluation) resolve(n *typeName) (debuginfo.Type, error) {
	var t debuginfo.Type
	if own, known := ownTypes[n.name]; known && n.own {
		t = own
	} else if t, known = e.scope.Type(n.name); !known {
		return nil, typeProblem("there is no type %s", n.name)
	}
	for range n.stars {
		t = pointerTo(t)
	}
	return t, nil
}
