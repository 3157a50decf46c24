package value

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"diagnose/evidence"
	"diagnose/image"
)

// program is a stack program in delve's terms: every operation that needs a
// register, an address or the caller is replaced by its constant result in this
// frame, because delve treats some unknown values as zero and lacks some
// operations.
type program struct {
	code []byte
	// moved maps the offset of each operation in the original expression to
	// its offset in code; branches are patched by it at the end.
	moved    map[int]int
	branches []branch
	// types are those of the stack's entries; typed says that one was not the
	// generic type.
	types []stackType
	typed bool
}

type branch struct {
	operand int // in code
	target  int // in the original expression
}

// value runs a stack program and returns the top of its stack.
func (e *evaluator) value(list []operation) (uint64, error) {
	p := program{moved: map[int]int{}}
	for _, o := range list {
		p.moved[o.start] = len(p.code)
		if err := e.translate(&p, o); err != nil {
			return 0, err
		}
		p.moved[o.end] = len(p.code)
	}
	if p.typed && len(p.branches) > 0 {
		return 0, errTyped
	}
	if err := p.patch(); err != nil {
		return 0, err
	}
	return p.execute(e.frame.readable())
}

func (p *program) constant(v uint64) {
	p.code = append(p.code, byte(op.DW_OP_const8u))
	p.code = binary.LittleEndian.AppendUint64(p.code, v)
}

func (p *program) leb(code op.Opcode, v uint64) {
	p.code = binary.AppendUvarint(append(p.code, byte(code)), v)
}

// branch appends a branch. Only forward branches are taken, so that the
// operations executed are bounded by the length of the expression.
func (p *program) branch(o operation) error {
	offset := int(int64(o.args[0]))
	if offset < 0 {
		return fmt.Errorf("location expression at %d: branch backward by %d", o.start, -offset)
	}
	p.code = append(p.code, byte(o.code), 0, 0)
	p.branches = append(p.branches, branch{len(p.code) - 2, o.end + offset})
	return nil
}

func (p *program) patch() error {
	for _, b := range p.branches {
		target, ok := p.moved[b.target]
		if !ok {
			return fmt.Errorf("location expression: branch to %d, where no operation starts", b.target)
		}
		distance := target - (b.operand + 2)
		if distance > 1<<15-1 {
			return fmt.Errorf("location expression: branch by %d", distance)
		}
		binary.LittleEndian.PutUint16(p.code[b.operand:], uint16(distance))
	}
	return nil
}

// execute runs the program so far. delve panics on a division by zero, on
// some stack underflows and on operands that it cannot parse.
func (p *program) execute(m image.Memory) (v uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = 0, fmt.Errorf("location expression: %v", r)
		}
	}()
	read := func(b []byte, addr uint64) (int, error) {
		return m.ReadMemory(evidence.Addr(addr), b)
	}
	regs := op.NewDwarfRegisters(0, nil, binary.LittleEndian, 0, 0, 0, 0)
	top, _, err := op.ExecuteStackProgram(*regs, p.code, 8, read)
	return uint64(top), err
}

// translate appends one operation.
func (e *evaluator) translate(p *program, o operation) error {
	switch o.code {
	case op.DW_OP_bra, op.DW_OP_skip:
		return p.branch(o)
	case op.DW_OP_form_tls_address, opGNUPushTLS:
		return e.translateTLS(p)
	case opDerefType, opGNUDerefType:
		return e.translateDeref(p, o)
	case opConvert, opGNUConvert, opReinterpret, opGNUReinterpret:
		t, err := e.stackTypeOf(o.args[0])
		if err != nil {
			return err
		}
		return p.convert(t, o.code == opReinterpret || o.code == opGNUReinterpret)
	case op.DW_OP_pick, op.DW_OP_deref_size:
		p.code = append(p.code, byte(o.code), byte(o.args[0]))
		return p.apply(o)
	case op.DW_OP_plus_uconst:
		p.leb(o.code, o.args[0])
		return p.apply(o)
	}
	if pushes, err := e.translateConstant(p, o); pushes || err != nil {
		return err
	}
	if operandFormat[o.code] == "" && (o.code <= op.DW_OP_ne || o.code == op.DW_OP_nop) && o.code != op.DW_OP_xderef {
		p.code = append(p.code, byte(o.code))
		return p.apply(o)
	}
	if _, isRegister := registerOperand(o); isRegister || o.code == op.DW_OP_stack_value || o.code == op.DW_OP_implicit_value {
		return fmt.Errorf("location expression at %d: operation %#x is not the last one", o.start, uint8(o.code))
	}
	return unavailable(fmt.Sprintf("described by DWARF operation %#x, which is not evaluated", uint8(o.code)))
}

// translateTLS turns the offset on top of the stack into the address in the
// thread's copy of the module's block. The operations before it are run to find
// the offset, which is correct only if no branch crosses this point.
func (e *evaluator) translateTLS(p *program) error {
	if len(p.branches) > 0 {
		return errors.New("location expression: branches before a thread-local address")
	}
	offset, err := p.execute(e.frame.readable())
	if err != nil {
		return err
	}
	f := e.frame
	if f.Process == nil || f.Thread == nil || f.Module == nil {
		return unavailable("the thread's local storage is not known")
	}
	base, err := f.Process.ThreadLocal(f.Thread, f.Module)
	if err != nil {
		return err
	}
	p.code = append(p.code, byte(op.DW_OP_drop))
	p.pop()
	p.constant(uint64(base) + offset)
	p.push(stackType{})
	return nil
}

// translateDeref reads a value whose type the operation gives.
func (e *evaluator) translateDeref(p *program, o operation) error {
	t, err := e.stackTypeOf(o.args[1])
	if err != nil {
		return err
	}
	p.code = append(p.code, byte(op.DW_OP_deref_size), byte(o.args[0]))
	p.pop()
	p.extend(t)
	p.push(t)
	return nil
}

// translateConstant appends the constant that an operation yields in this
// frame; pushes is false for operations that do not yield one.
func (e *evaluator) translateConstant(p *program, o operation) (pushes bool, err error) {
	v, pushes, err := e.constant(o)
	if !pushes || err != nil {
		return false, err
	}
	t, err := e.constantType(o)
	if err != nil {
		return false, err
	}
	p.constant(v)
	p.extend(t)
	p.push(t)
	return true, nil
}

// constantType returns the type of the value that a constant operation pushes.
func (e *evaluator) constantType(o operation) (stackType, error) {
	switch o.code {
	case opRegvalType, opGNURegvalType:
		return e.stackTypeOf(o.args[1])
	case opConstType, opGNUConstType:
		return e.stackTypeOf(o.args[0])
	}
	return stackType{}, nil
}

func (e *evaluator) constant(o operation) (v uint64, pushes bool, err error) {
	switch {
	case o.code >= op.DW_OP_lit0 && o.code <= op.DW_OP_lit31:
		return uint64(o.code - op.DW_OP_lit0), true, nil
	case o.code >= op.DW_OP_breg0 && o.code <= op.DW_OP_breg31:
		v, err = e.register(uint64(o.code - op.DW_OP_breg0))
		return v + o.args[0], true, err
	}
	switch o.code {
	case op.DW_OP_const1u, op.DW_OP_const2u, op.DW_OP_const4u, op.DW_OP_const8u, op.DW_OP_const8s,
		op.DW_OP_constu, op.DW_OP_consts:
		v = o.args[0]
	case op.DW_OP_const1s:
		v = uint64(int64(int8(o.args[0])))
	case op.DW_OP_const2s:
		v = uint64(int64(int16(o.args[0])))
	case op.DW_OP_const4s:
		v = uint64(int64(int32(o.args[0])))
	case op.DW_OP_bregx:
		v, err = e.register(o.args[0])
		v += o.args[1]
	case op.DW_OP_fbreg:
		v, err = e.base()
		v += o.args[0]
	case op.DW_OP_call_frame_cfa:
		v, err = e.cfa()
	case op.DW_OP_addr:
		v, err = e.address(o.args[0])
	case opEntryValue, opGNUEntryValue:
		v, err = e.entryValue(o.block)
	case opRegvalType, opGNURegvalType:
		v, err = e.register(o.args[0])
	case opConstType, opGNUConstType:
		v, err = typedConstant(o.block)
	default:
		return 0, false, nil
	}
	return v, true, err
}

func typedConstant(block []byte) (uint64, error) {
	if len(block) > 8 {
		return 0, unavailable(fmt.Sprintf("a constant of %d bytes", len(block)))
	}
	return unsignedOf(block), nil
}
