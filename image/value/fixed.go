package value

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/formula"
)

// Fixed says where a variable is whenever a thread is at one instruction. Exactly one of its parts is set.
type Fixed struct {
	// Address is that of a variable in memory.
	Address *formula.Node
	// Value has the variable's bytes, the lowest first, if it is in no memory.
	Value *formula.Node
}

// CodePoint is an instruction of an object of the process. Frame is the canonical frame address there; nil: it is not known.
type CodePoint struct {
	Module *image.Module
	Frame  *formula.Node
}

// Fix returns where a variable is at an instruction, as Lives does for a frame there. ok is false if its location has a form that only
// Lives evaluates, or if it has no value.
func (c CodePoint) Fix(v debuginfo.Variable) (f Fixed, ok bool) {
	if len(v.Location) == 0 {
		if len(v.Const) == 0 || len(v.Const) > 8 || v.Type == nil || v.Type.Size() != int64(len(v.Const)) {
			return Fixed{}, false
		}
		return Fixed{Value: formula.Number(unsignedOf(v.Const))}, true
	}
	list, err := scan(v.Location)
	if err != nil {
		return Fixed{}, false
	}
	s := symbolic{point: c, frameBase: v.FrameBase}
	return s.describe(list)
}

// symbolic evaluates location expressions to formulas.
type symbolic struct {
	point     CodePoint
	frameBase []byte
	stack     []*formula.Node
}

func (s *symbolic) describe(list []operation) (f Fixed, ok bool) {
	last := list[len(list)-1]
	if number, is := registerOperand(last); is {
		if len(list) > 1 {
			return Fixed{}, false
		}
		f.Value, ok = registerNode(number)
		return f, ok
	}
	value := last.code == op.DW_OP_stack_value
	if value {
		list = list[:len(list)-1]
	}
	for _, o := range list {
		if !s.step(o) {
			return Fixed{}, false
		}
	}
	if len(s.stack) == 0 {
		return Fixed{}, false
	}
	top := s.stack[len(s.stack)-1]
	if value {
		return Fixed{Value: top}, true
	}
	return Fixed{Address: top}, true
}

// registerNode returns the value of a register by its DWARF number.
func registerNode(number uint64) (*formula.Node, bool) {
	switch {
	case isVector(number):
		return &formula.Node{Kind: formula.Vector, Value: number - firstVector}, true
	case number < uint64(image.RIP):
		return &formula.Node{Kind: formula.Register, Value: number}, true
	}
	return nil, false
}

func (s *symbolic) push(n *formula.Node) bool {
	s.stack = append(s.stack, n)
	return n != nil
}

func (s *symbolic) pop() *formula.Node {
	n := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	return n
}

// step carries out one operation; false: its kind is not among those that compilers use for simple places.
func (s *symbolic) step(o operation) bool {
	switch code := o.code; {
	case code >= op.DW_OP_lit0 && code <= op.DW_OP_lit31:
		return s.push(formula.Number(uint64(code - op.DW_OP_lit0)))
	case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg31:
		return s.relative(uint64(code-op.DW_OP_breg0), o.args[0])
	case code == op.DW_OP_bregx:
		return s.relative(o.args[0], o.args[1])
	case code == op.DW_OP_addr:
		return s.point.Module != nil && s.push(formula.Number(uint64(s.point.Module.Addr(o.args[0]))))
	case code == op.DW_OP_call_frame_cfa:
		return s.push(s.point.Frame)
	case code == op.DW_OP_fbreg:
		base, ok := s.base()
		return ok && s.push(formula.Plus(base, int64(o.args[0])))
	}
	if n, ok := constantOperand(o); ok {
		return s.push(n)
	}
	return s.compute(o)
}

func (s *symbolic) relative(number, offset uint64) bool {
	base, ok := registerNode(number)
	return ok && base.Kind == formula.Register && s.push(formula.Plus(base, int64(offset)))
}

func constantOperand(o operation) (*formula.Node, bool) {
	size, signed := int64(8), false
	switch o.code {
	case op.DW_OP_constu, op.DW_OP_consts, op.DW_OP_const8u, op.DW_OP_const8s:
	case op.DW_OP_const1u, op.DW_OP_const1s:
		size, signed = 1, o.code == op.DW_OP_const1s
	case op.DW_OP_const2u, op.DW_OP_const2s:
		size, signed = 2, o.code == op.DW_OP_const2s
	case op.DW_OP_const4u, op.DW_OP_const4s:
		size, signed = 4, o.code == op.DW_OP_const4s
	default:
		return nil, false
	}
	v := o.args[0]
	if shift := uint(64 - 8*size); signed {
		v = uint64(int64(v<<shift) >> shift)
	}
	return formula.Number(v), true
}

// compute carries out an operation with operands on the stack.
func (s *symbolic) compute(o operation) bool {
	if len(s.stack) == 0 {
		return false
	}
	switch o.code {
	case op.DW_OP_plus_uconst:
		return s.push(formula.Plus(s.pop(), int64(o.args[0])))
	case op.DW_OP_deref:
		return s.push(&formula.Node{Kind: formula.Load, Size: 8, A: s.pop()})
	case op.DW_OP_neg:
		return s.push(formula.Of(formula.Subtract, formula.Number(0), s.pop()))
	case op.DW_OP_not:
		return s.push(formula.Of(formula.Xor, s.pop(), formula.Number(^uint64(0))))
	}
	kind, known := map[op.Opcode]formula.Kind{op.DW_OP_plus: formula.Add, op.DW_OP_minus: formula.Subtract, op.DW_OP_mul: formula.Multiply,
		op.DW_OP_and: formula.And, op.DW_OP_or: formula.Or, op.DW_OP_xor: formula.Xor}[o.code]
	if !known || len(s.stack) < 2 {
		return false
	}
	b, a := s.pop(), s.pop()
	return s.push(formula.Of(kind, a, b))
}

// base is the value of the frame base. A register as its location means the register's value (DWARF 5 section 3.3.5).
func (s *symbolic) base() (*formula.Node, bool) {
	list, err := scan(s.frameBase)
	if err != nil || len(list) == 0 {
		return nil, false
	}
	inner := symbolic{point: s.point}
	f, ok := inner.describe(list)
	switch {
	case !ok:
		return nil, false
	case f.Address != nil:
		return f.Address, true
	}
	return f.Value, f.Value.Kind == formula.Register
}

// FormatsAlone reports whether an object of a type can be formatted from its own bytes and the names of symbols, at a depth of zero with
// Options.Shallow.
func FormatsAlone(t debuginfo.Type) bool {
	if t == nil || t.Size() <= 0 {
		return false
	}
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindFloat, debuginfo.KindEnum:
		return t.Size() <= maxScalar
	case debuginfo.KindPointer:
		return !t.Reference() && t.Size() == 8 && !PointsToText(t)
	case debuginfo.KindArray:
		return t.Elem() != nil && t.Elem().Kind() != debuginfo.KindArray && FormatsAlone(t.Elem())
	}
	return false
}

// PointsToText reports whether a pointer is formatted with the characters that it points to.
func PointsToText(t debuginfo.Type) bool {
	elem := t.Elem()
	return t.Kind() == debuginfo.KindPointer && elem != nil && elem.Kind() == debuginfo.KindChar && elem.Size() == 1
}
