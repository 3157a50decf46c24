package value

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"diagnose/image/debuginfo"
)

// stackType is the type of an entry of the expression stack (DWARF 5 section
// 2.5.1). The zero value is the generic type. Integers of fewer than 8 bytes
// are kept sign- or zero-extended to 8, so that 64-bit arithmetic followed by
// another extension gives the result of the type.
type stackType struct {
	size            int64
	signed, isFloat bool
}

func (t stackType) generic() bool { return t == stackType{} }

// unsignedWord reports the one type whose division and order differ from
// those of the signed 64-bit integers that delve computes with.
func (t stackType) unsignedWord() bool { return t.size == 8 && !t.signed && !t.isFloat }

var errTyped = unavailable("computed with typed DWARF operations that are not evaluated")

// stackTypeOf resolves the base type that an operation refers to.
func (e *evaluator) stackTypeOf(offset uint64) (stackType, error) {
	if offset == 0 {
		return stackType{}, nil
	}
	if e.variable == nil {
		return stackType{}, errTyped
	}
	t, ok := e.variable.BaseType(offset)
	if !ok || t.Size() <= 0 || t.Size() > 8 {
		return stackType{}, errTyped
	}
	s := stackType{size: t.Size()}
	switch t.Kind() {
	case debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindBool, debuginfo.KindChar:
		s.signed = isSigned(t)
	case debuginfo.KindFloat:
		s.isFloat = true
	default:
		return stackType{}, errTyped
	}
	return s, nil
}

// push and pop track the types as the program runs; delve detects an underflow.
func (p *program) push(t stackType) {
	p.typed = p.typed || !t.generic()
	p.types = append(p.types, t)
}

func (p *program) pop() stackType {
	if len(p.types) == 0 {
		return stackType{}
	}
	t := p.types[len(p.types)-1]
	p.types = p.types[:len(p.types)-1]
	return t
}

// nth returns the type n entries below the top.
func (p *program) nth(n int) stackType {
	if n >= len(p.types) {
		return stackType{}
	}
	return p.types[len(p.types)-1-n]
}

// extend appends operations that bring the top of the stack into the type's
// range.
func (p *program) extend(t stackType) {
	if t.isFloat || t.size == 0 || t.size >= 8 {
		return
	}
	if !t.signed {
		p.constant(1<<(8*t.size) - 1)
		p.code = append(p.code, byte(op.DW_OP_and))
		return
	}
	shift := uint64(64 - 8*t.size)
	p.constant(shift)
	p.code = append(p.code, byte(op.DW_OP_shl))
	p.constant(shift)
	p.code = append(p.code, byte(op.DW_OP_shra))
}

// convert changes the type of the top of the stack.
func (p *program) convert(to stackType, reinterpret bool) error {
	from := p.pop()
	if from.isFloat != to.isFloat && !(reinterpret && from.size == to.size) || from.isFloat && to.isFloat && from.size != to.size {
		return errTyped
	}
	p.extend(to)
	p.push(to)
	return nil
}

// apply tracks the types through an operator, whose code is already appended,
// and extends its result.
func (p *program) apply(o operation) error {
	switch o.code {
	case op.DW_OP_dup:
		p.push(p.nth(0))
	case op.DW_OP_over:
		p.push(p.nth(1))
	case op.DW_OP_pick:
		p.push(p.nth(int(o.args[0])))
	case op.DW_OP_drop:
		p.pop()
	case op.DW_OP_swap:
		a, b := p.pop(), p.pop()
		p.push(a)
		p.push(b)
	case op.DW_OP_rot:
		a, b, c := p.pop(), p.pop(), p.pop()
		p.push(a)
		p.push(c)
		p.push(b)
	case op.DW_OP_deref, op.DW_OP_deref_size:
		p.pop()
		p.push(stackType{})
	case op.DW_OP_abs, op.DW_OP_neg, op.DW_OP_not, op.DW_OP_plus_uconst:
		if p.nth(0).isFloat {
			return errTyped
		}
		p.extend(p.nth(0))
	case op.DW_OP_shl, op.DW_OP_shr, op.DW_OP_shra:
		return p.shift(o.code)
	case op.DW_OP_nop:
	default:
		return p.combine(o.code)
	}
	return nil
}

// shift rejects shifts that are wrong on extended values: logical ones of a
// narrow signed integer, and arithmetic ones of an unsigned integer.
func (p *program) shift(code op.Opcode) error {
	by, t := p.pop(), p.pop()
	narrowNegative := code == op.DW_OP_shr && t.signed && t.size < 8
	if by.isFloat || t.isFloat || narrowNegative || code == op.DW_OP_shra && !t.signed && !t.generic() {
		return errTyped
	}
	p.extend(t)
	p.push(t)
	return nil
}

// combine is for operators of two operands, which must have the same type.
func (p *program) combine(code op.Opcode) error {
	b, a := p.pop(), p.pop()
	if a != b || a.isFloat {
		return errTyped
	}
	ordered := code == op.DW_OP_div || code == op.DW_OP_mod || code >= op.DW_OP_ge && code <= op.DW_OP_lt
	if ordered && a.unsignedWord() {
		return errTyped
	}
	if code >= op.DW_OP_eq && code <= op.DW_OP_ne {
		p.push(stackType{})
		return nil
	}
	p.extend(a)
	p.push(a)
	return nil
}
