package expression

import (
	"bytes"
	"cmp"

	"diagnose/evidence"
)

func addr(v uint64) evidence.Addr { return evidence.Addr(v) }

// untilNUL returns the characters before the first NUL, or all.
func untilNUL(data []byte) string {
	text, _, _ := bytes.Cut(data, []byte{0})
	return string(text)
}

// compared returns the result of a comparison whose operands compare as order; known is false for
// other operators.
func compared(op string, order int) (yes, known bool) {
	switch op {
	case "==":
		return order == 0, true
	case "!=":
		return order != 0, true
	case "<":
		return order < 0, true
	case "<=":
		return order <= 0, true
	case ">":
		return order > 0, true
	case ">=":
		return order >= 0, true
	}
	return false, false
}

// pointers computes with addresses; the other operand may be an integer.
func (e *evaluation) pointers(op string, a, b scalar) (operand, error) {
	if a.class == floating || b.class == floating {
		return operand{}, typeProblem("%s of a pointer and a floating-point number", op)
	}
	if yes, known := compared(op, cmp.Compare(a.bits, b.bits)); known {
		return e.truthValue(yes), nil
	}
	switch {
	case op == "+" && a.class == integer:
		a, b = b, a
		fallthrough
	case (op == "+" || op == "-") && b.class == integer:
		index := int64(b.bits)
		if op == "-" {
			index = -index
		}
		return e.moved(a, index)
	case op == "-" && a.class == pointer:
		return e.distance(a, b)
	}
	return operand{}, typeProblem("%s of a pointer", op)
}

// moved returns a pointer moved by a number of elements.
func (e *evaluation) moved(p scalar, by int64) (operand, error) {
	elem := p.typ.Elem()
	if elem == nil { // GNU's arithmetic with void *
		elem = charType
	}
	offset, err := offsetOf(elem, by)
	if err != nil {
		return operand{}, err
	}
	return e.made(p.typ, p.bits+uint64(offset)), nil
}

// distance returns the number of elements between two pointers.
func (e *evaluation) distance(a, b scalar) (operand, error) {
	size := int64(1)
	if elem := a.typ.Elem(); elem != nil {
		size = elem.Size()
	}
	other := int64(1)
	if elem := b.typ.Elem(); elem != nil {
		other = elem.Size()
	}
	if size <= 0 || size != other {
		return operand{}, typeProblem("the distance of pointers to different types")
	}
	return e.number(longType, uint64(int64(a.bits-b.bits)/size)), nil
}

func (e *evaluation) floats(op string, a, b scalar) (operand, error) {
	x, y := a.asFloat(), b.asFloat()
	if x != x || y != y { // a NaN is unequal to everything, and has no order
		if _, known := compared(op, 0); known {
			return e.truthValue(op == "!="), nil
		}
	} else if yes, known := compared(op, cmp.Compare(x, y)); known {
		return e.truthValue(yes), nil
	}
	t := floatType
	if a.class == floating && a.size == 8 || b.class == floating && b.size == 8 {
		t = doubleType
	}
	switch op {
	case "+":
		return e.float(t, x+y), nil
	case "-":
		return e.float(t, x-y), nil
	case "*":
		return e.float(t, x*y), nil
	case "/":
		return e.float(t, x/y), nil // IEEE 754: infinities and NaN
	}
	return operand{}, typeProblem("%s of floating-point numbers", op)
}

func (e *evaluation) integers(op string, a, b scalar) (operand, error) {
	if op == "<<" || op == ">>" {
		return e.shift(op, a, b)
	}
	t := common(a.promoted(), b.promoted())
	x, y := extend(a.bits, t.size, t.signed), extend(b.bits, t.size, t.signed)
	order := cmp.Compare(x, y)
	if t.signed {
		order = cmp.Compare(int64(x), int64(y))
	}
	if yes, known := compared(op, order); known {
		return e.truthValue(yes), nil
	}
	switch op {
	case "+":
		return e.number(t, x+y), nil
	case "-":
		return e.number(t, x-y), nil
	case "*":
		return e.number(t, x*y), nil
	case "&":
		return e.number(t, x&y), nil
	case "|":
		return e.number(t, x|y), nil
	case "^":
		return e.number(t, x^y), nil
	}
	return e.divide(op, t, x, y)
}

func (e *evaluation) divide(op string, t *basicType, x, y uint64) (operand, error) {
	if y == 0 {
		if e.dry {
			return e.number(t, 0), nil
		}
		return operand{}, valueProblem("a division by zero")
	}
	switch {
	case t.signed && int64(y) == -1: // the least number has no quotient
		if op == "/" {
			return e.number(t, -x), nil
		}
		return e.number(t, 0), nil
	case t.signed && op == "/":
		return e.number(t, uint64(int64(x)/int64(y))), nil
	case t.signed:
		return e.number(t, uint64(int64(x)%int64(y))), nil
	case op == "/":
		return e.number(t, x/y), nil
	}
	return e.number(t, x%y), nil
}

// shift shifts by fewer bits than the operand has; other shifts are undefined (C11, 6.5.7).
func (e *evaluation) shift(op string, a, b scalar) (operand, error) {
	t := a.promoted()
	if b.bits >= uint64(8*t.size) {
		return operand{}, valueProblem("a shift by %d bits", int64(b.bits))
	}
	x := extend(a.bits, t.size, t.signed)
	switch {
	case op == "<<":
		return e.number(t, x<<b.bits), nil
	case t.signed:
		return e.number(t, uint64(int64(x)>>b.bits)), nil
	}
	return e.number(t, x>>b.bits), nil
}
