package expression

import (
	"encoding/binary"
	"errors"
	"math"

	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

type class uint8

const (
	integer class = iota
	floating
	pointer
)

// scalar is the value of an operand for computing.
type scalar struct {
	class class
	typ   debuginfo.Type
	// bits are an integer or a pointer, extended to 64 bits as its type says.
	bits   uint64
	float  float64
	size   int64
	signed bool
	// width is the number of bits of a bit field; 0: it is none.
	width int64
}

// load reads the value of an operand. Arrays and functions stand for their addresses (C11,
// 6.3.2.1).
func (e *evaluation) load(x operand) (scalar, error) {
	t := x.Type
	if x.text != nil {
		return scalar{}, typeProblem("a string literal can only be compared by == and !=")
	}
	if t == nil {
		return scalar{}, typeProblem("the type of an operand is not known")
	}
	s := scalar{typ: t, size: t.Size(), width: x.Bits()}
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum:
		s.signed = value.Signed(t)
	case debuginfo.KindFloat:
		s.class = floating
		if s.size != 4 && s.size != 8 {
			return s, typeProblem("%s of %d bytes is not computed with", typeText(t), s.size)
		}
	case debuginfo.KindPointer:
		s.class = pointer
		if s.size != 8 {
			return s, typeProblem("%s is a pointer of %d bytes", typeText(t), s.size)
		}
	case debuginfo.KindArray, debuginfo.KindFunc:
		return e.decay(x)
	default:
		return s, typeProblem("%s is no number", typeText(t))
	}
	if s.size <= 0 || s.size > 8 {
		return s, typeProblem("%s of %d bytes is not computed with", typeText(t), s.size)
	}
	if e.dry {
		return s, nil
	}
	data, err := x.Bytes()
	if err != nil {
		return s, err
	}
	s.set(data)
	return s, nil
}

func (s *scalar) set(data []byte) {
	s.bits = littleEndian(data)
	if s.class != floating {
		s.bits = extend(s.bits, s.size, s.signed)
		return
	}
	if s.size == 4 {
		s.float = float64(math.Float32frombits(uint32(s.bits)))
		return
	}
	s.float = math.Float64frombits(s.bits)
}

// decay makes a pointer of an array or a function.
func (e *evaluation) decay(x operand) (scalar, error) {
	elem := x.Type
	if x.Type.Kind() == debuginfo.KindArray {
		elem = x.Type.Elem()
	}
	at, ok := x.Address()
	if !ok {
		return scalar{}, typeProblem("%s is in no memory, so it has no address", typeText(x.Type))
	}
	return scalar{class: pointer, typ: pointerTo(elem), bits: uint64(at), size: 8}, nil
}

// extend makes 64 bits of the low ones.
func extend(v uint64, size int64, signed bool) uint64 {
	if size >= 8 {
		return v
	}
	shift := uint(64 - 8*size)
	if signed {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

// made returns an operand that was computed.
func (e *evaluation) made(t debuginfo.Type, bits uint64) operand {
	data := binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()]
	return operand{Object: value.ObjectFrom(e.scope.Memory(), data, t)}
}

// number returns an integer of a type, cut to it.
func (e *evaluation) number(t *basicType, v uint64) operand {
	return e.made(t, extend(v, t.size, t.signed))
}

func (e *evaluation) float(t *basicType, v float64) operand {
	if t == floatType {
		return e.made(t, uint64(math.Float32bits(float32(v))))
	}
	return e.made(t, math.Float64bits(v))
}

// promoted is the type of an integer in an operation (C11, 6.3.1.1).
func (s *scalar) promoted() *basicType {
	switch {
	case s.size < 4 || s.size == 4 && s.signed || s.width > 0 && s.width < 32:
		return intType
	case s.size == 4:
		return uintType
	case s.signed:
		return longType
	}
	return ulongType
}

// common is the type in which two integers are computed (C11, 6.3.1.8).
func common(a, b *basicType) *basicType {
	switch {
	case a.size != b.size:
		if a.size > b.size {
			return a
		}
		return b
	case !a.signed:
		return a
	}
	return b
}

// asFloat returns a number as floating point.
func (s *scalar) asFloat() float64 {
	switch {
	case s.class == floating:
		return s.float
	case s.signed:
		return float64(int64(s.bits))
	}
	return float64(s.bits)
}

func (e *evaluation) negated(op string, s scalar) (operand, error) {
	switch {
	case s.class == pointer:
		return operand{}, typeProblem("%s of a pointer", op)
	case s.class == floating:
		t := doubleType
		if s.size == 4 {
			t = floatType
		}
		switch op {
		case "-":
			return e.float(t, -s.float), nil
		case "+":
			return e.float(t, s.float), nil
		}
		return operand{}, typeProblem("%s of a floating-point number", op)
	}
	t := s.promoted()
	switch op {
	case "-":
		return e.number(t, -s.bits), nil
	case "~":
		return e.number(t, ^s.bits), nil
	}
	return e.number(t, s.bits), nil
}

type cast struct {
	to typeName
	x  node
}

func (n *cast) eval(e *evaluation) (operand, error) {
	x, err := n.x.eval(e)
	if err != nil {
		return x, err
	}
	t, err := e.resolve(&n.to)
	if err != nil {
		return x, err
	}
	s, err := e.load(x)
	if err != nil {
		return x, err
	}
	size := t.Size()
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum:
	case debuginfo.KindFloat:
		if s.class == pointer || size != 4 && size != 8 {
			return x, typeProblem("%s cannot be cast to %s", typeText(x.Type), typeText(t))
		}
		return e.toFloat(t, size, s.asFloat()), nil
	case debuginfo.KindPointer:
		if s.class == floating || t.Reference() {
			return x, typeProblem("%s cannot be cast to %s", typeText(x.Type), typeText(t))
		}
	default:
		return x, typeProblem("nothing can be cast to %s", typeText(t))
	}
	if size <= 0 || size > 8 {
		return x, typeProblem("%s of %d bytes is not computed with", typeText(t), size)
	}
	v := s.bits
	switch {
	case t.Kind() == debuginfo.KindBool && (s.class == floating && s.float != 0 || s.class != floating && s.bits != 0):
		v = 1
	case t.Kind() == debuginfo.KindBool:
		v = 0
	case s.class == floating:
		if v, err = toInteger(s.float, size, value.Signed(t)); err != nil {
			return x, err
		}
	}
	return e.made(t, v), nil
}

func (e *evaluation) toFloat(t debuginfo.Type, size int64, v float64) operand {
	if size == 4 {
		return e.made(t, uint64(math.Float32bits(float32(v))))
	}
	return e.made(t, math.Float64bits(v))
}

// toInteger converts a number that the type has; others are undefined (C11, 6.3.1.4).
func toInteger(v float64, size int64, signed bool) (uint64, error) {
	v = math.Trunc(v)
	bits := float64(8 * size)
	low, high := 0.0, math.Exp2(bits)
	if signed {
		low, high = -math.Exp2(bits-1), math.Exp2(bits-1)
	}
	if !(v >= low && v < high) { // a NaN, too
		return 0, valueProblem("%g is outside of the type that it is cast to", v)
	}
	if v < 0 {
		return uint64(int64(v)), nil
	}
	return uint64(v), nil
}

// binaryNode is an operation whose operands are both evaluated.
type binaryNode struct {
	op          string
	left, right node
}

func (n *binaryNode) eval(e *evaluation) (operand, error) {
	x, err := n.left.eval(e)
	if err != nil {
		return x, err
	}
	y, err := n.right.eval(e)
	if err != nil {
		return y, err
	}
	if x.text != nil || y.text != nil {
		return e.compareText(n.op, x, y)
	}
	a, err := e.load(x)
	if err != nil {
		return x, err
	}
	b, err := e.load(y)
	if err != nil {
		return y, err
	}
	switch {
	case a.class == pointer || b.class == pointer:
		return e.pointers(n.op, a, b)
	case a.class == floating || b.class == floating:
		return e.floats(n.op, a, b)
	}
	return e.integers(n.op, a, b)
}

// compareText compares characters of the program with a string literal.
func (e *evaluation) compareText(op string, x, y operand) (operand, error) {
	if x.text != nil {
		x, y = y, x
	}
	if op != "==" && op != "!=" || x.text != nil {
		return x, typeProblem("a string literal can only be compared by == and != with characters of the program")
	}
	t := x.Type
	if t == nil || t.Kind() != debuginfo.KindPointer && t.Kind() != debuginfo.KindArray || t.Elem() == nil || t.Elem().Size() != 1 {
		return x, typeProblem("%s is compared with a string literal", typeText(t))
	}
	if e.dry {
		return e.truthValue(false), nil
	}
	var have string
	whole := true
	if t.Kind() == debuginfo.KindArray {
		data, err := x.Bytes()
		if err != nil {
			return x, err
		}
		have = untilNUL(data)
	} else {
		p, err := e.load(x)
		if err != nil {
			return x, err
		}
		memory := e.scope.Memory()
		if memory == nil {
			return x, errors.New("there is no memory to read")
		}
		have, whole, err = image.CString(memory, addr(p.bits), len(y.text)+1)
		if err != nil {
			return x, err
		}
	}
	equal := whole && have == string(y.text)
	return e.truthValue(equal == (op == "==")), nil
}

// littleEndian is the number whose lowest bytes are these; at most 8 count.
func littleEndian(data []byte) uint64 {
	var wide [8]byte
	copy(wide[:], data)
	return binary.LittleEndian.Uint64(wide[:])
}
