package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"diagnose/evidence"
	"diagnose/image"
)

// maxExpression bounds the length of an expression. Those of compilers and of
// libc are below 20 bytes.
const maxExpression = 512

// expression is a DWARF expression of a call frame table, and its inputs.
type expression struct {
	code []byte
	regs *image.Registers
	// pushCFA pushes the CFA first, which register rules require and the CFA's
	// own rule forbids (DWARF 5 section 6.4.2.3).
	pushCFA bool
	cfa     evidence.Addr
	bias    uint64
}

// evaluate runs the expression with delve's interpreter.
func (e *expression) evaluate(stack *stackReader) (v uint64, err error) {
	if err := vetExpression(e.code); err != nil {
		return 0, err
	}
	if err := stack.spent.spend(expressionCost + len(e.code)); err != nil {
		return 0, err
	}
	var values [columns]op.DwarfRegister
	var list [columns]*op.DwarfRegister
	for n := range list {
		if v, ok := e.regs.Get(image.Register(n)); ok {
			values[n].Uint64Val = v
			list[n] = &values[n]
		}
	}
	regs := op.NewDwarfRegisters(e.bias, list[:], binary.LittleEndian,
		uint64(image.RIP), uint64(image.RSP), uint64(image.RBP), 0)
	code := e.code
	if e.pushCFA {
		code = append([]byte{byte(op.DW_OP_const8u)}, binary.LittleEndian.AppendUint64(nil, uint64(e.cfa))...)
		code = append(code, e.code...)
	}
	err = recovered("expression", func() error {
		value, pieces, err := op.ExecuteStackProgram(*regs, code, 8, stack.read)
		if err == nil && pieces != nil {
			err = errors.New("the expression is a location, not an address")
		}
		v = uint64(value)
		return err
	})
	return v, err
}

// vetExpression rejects operations that are not allowed in call frame
// information (DWARF 5 section 6.4.2), expressions for which delve's
// interpreter would allocate unbounded memory, and loops: the interpreter
// leaves them after a while and returns a value as if it were the result.
func vetExpression(code []byte) error {
	if len(code) == 0 || len(code) > maxExpression {
		return fmt.Errorf("expression of %d bytes", len(code))
	}
	var starts [maxExpression + 1]bool
	var targets []int
	r := reader{data: code}
	for r.left() > 0 {
		at := r.pos
		starts[at] = true
		o := op.Opcode(r.u8())
		if !skipOperands(&r, o) {
			return fmt.Errorf("operation %#x at %#x of the expression is not allowed there", byte(o), at)
		}
		if r.err != nil {
			return r.err
		}
		if o == op.DW_OP_skip || o == op.DW_OP_bra {
			by := int(int16(binary.LittleEndian.Uint16(code[r.pos-2:])))
			if by < 0 {
				return fmt.Errorf("jump back at %#x of the expression", at)
			}
			targets = append(targets, r.pos+by)
		}
	}
	starts[len(code)] = true
	for _, to := range targets {
		if to > len(code) || !starts[to] {
			return fmt.Errorf("jump to %#x of the expression, where no operation begins", to)
		}
	}
	return nil
}

// skipOperands skips the operands of an operation; false if it is not allowed
// in call frame information or not known.
func skipOperands(r *reader, o op.Opcode) bool {
	switch {
	case o >= op.DW_OP_lit0 && o <= op.DW_OP_lit31:
	case o >= op.DW_OP_breg0 && o <= op.DW_OP_breg31:
		r.sleb()
	case o >= op.DW_OP_dup && o <= op.DW_OP_over, o >= op.DW_OP_swap && o <= op.DW_OP_rot,
		o >= op.DW_OP_abs && o <= op.DW_OP_plus, o >= op.DW_OP_shl && o <= op.DW_OP_xor,
		o >= op.DW_OP_eq && o <= op.DW_OP_ne, o == op.DW_OP_deref, o == op.DW_OP_nop:
	case o == op.DW_OP_const1u, o == op.DW_OP_const1s, o == op.DW_OP_pick, o == op.DW_OP_deref_size:
		r.skip(1)
	case o == op.DW_OP_const2u, o == op.DW_OP_const2s, o == op.DW_OP_skip, o == op.DW_OP_bra:
		r.skip(2)
	case o == op.DW_OP_const4u, o == op.DW_OP_const4s:
		r.skip(4)
	case o == op.DW_OP_const8u, o == op.DW_OP_const8s, o == op.DW_OP_addr:
		r.skip(8)
	case o == op.DW_OP_constu, o == op.DW_OP_plus_uconst:
		r.uleb()
	case o == op.DW_OP_consts:
		r.sleb()
	case o == op.DW_OP_bregx:
		r.uleb()
		r.sleb()
	default:
		return false
	}
	return true
}
