package value

import (
	"encoding/binary"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// Operations that delve's table of opcodes does not have (DWARF 5 section
// 7.7.1, and the GNU forms that DWARF 5 made standard).
const (
	opImplicitPointer    op.Opcode = 0xa0
	opAddrx              op.Opcode = 0xa1
	opConstx             op.Opcode = 0xa2
	opEntryValue         op.Opcode = 0xa3
	opConstType          op.Opcode = 0xa4
	opRegvalType         op.Opcode = 0xa5
	opDerefType          op.Opcode = 0xa6
	opXderefType         op.Opcode = 0xa7
	opConvert            op.Opcode = 0xa8
	opReinterpret        op.Opcode = 0xa9
	opGNUPushTLS         op.Opcode = 0xe0
	opGNUUninit          op.Opcode = 0xf0
	opGNUImplicitPointer op.Opcode = 0xf2
	opGNUEntryValue      op.Opcode = 0xf3
	opGNUConstType       op.Opcode = 0xf4
	opGNURegvalType      op.Opcode = 0xf5
	opGNUDerefType       op.Opcode = 0xf6
	opGNUConvert         op.Opcode = 0xf7
	opGNUReinterpret     op.Opcode = 0xf9
	opGNUParameterRef    op.Opcode = 0xfa
	opGNUAddrIndex       op.Opcode = 0xfb
	opGNUConstIndex      op.Opcode = 0xfc
	opGNUVariableValue   op.Opcode = 0xfd
)

// maxExpression bounds the bytes of an expression; compilers stay below 200.
const maxExpression = 4096

// operation is one decoded operation of a DWARF expression.
type operation struct {
	code       op.Opcode
	start, end int // in the expression
	// args are the operands in order, signed ones sign extended; block is the
	// operand that is a block of bytes.
	args  [2]uint64
	block []byte
}

// operandFormat gives the operands of each operation that has any, one
// letter each: u and s are LEB128, 1 2 4 8 unsigned of that width, h a signed
// 16-bit branch, B a block with a LEB128 length, b a block with a length byte.
var operandFormat = map[op.Opcode]string{
	op.DW_OP_addr: "8", op.DW_OP_const1u: "1", op.DW_OP_const1s: "1",
	op.DW_OP_const2u: "2", op.DW_OP_const2s: "2", op.DW_OP_const4u: "4",
	op.DW_OP_const4s: "4", op.DW_OP_const8u: "8", op.DW_OP_const8s: "8",
	op.DW_OP_constu: "u", op.DW_OP_consts: "s", op.DW_OP_pick: "1",
	op.DW_OP_plus_uconst: "u", op.DW_OP_bra: "h", op.DW_OP_skip: "h",
	op.DW_OP_regx: "u", op.DW_OP_fbreg: "s", op.DW_OP_bregx: "us",
	op.DW_OP_piece: "u", op.DW_OP_deref_size: "1", op.DW_OP_xderef_size: "1",
	op.DW_OP_call2: "2", op.DW_OP_call4: "4", op.DW_OP_call_ref: "4",
	op.DW_OP_bit_piece: "uu", op.DW_OP_implicit_value: "B",
	opImplicitPointer: "4s", opGNUImplicitPointer: "4s", opAddrx: "u", opConstx: "u",
	opGNUAddrIndex: "u", opGNUConstIndex: "u", opEntryValue: "B", opGNUEntryValue: "B",
	opConstType: "ub", opGNUConstType: "ub", opRegvalType: "uu", opGNURegvalType: "uu",
	opDerefType: "1u", opGNUDerefType: "1u", opXderefType: "1u", opConvert: "u", opGNUConvert: "u",
	opReinterpret: "u", opGNUReinterpret: "u", opGNUParameterRef: "4", opGNUVariableValue: "4",
}

// known reports whether code is an operation whose operands we can skip.
func known(code op.Opcode) bool {
	if _, ok := operandFormat[code]; ok {
		return true
	}
	switch code {
	case op.DW_OP_deref, op.DW_OP_xderef, op.DW_OP_nop, op.DW_OP_push_object_address,
		op.DW_OP_form_tls_address, op.DW_OP_call_frame_cfa, op.DW_OP_stack_value,
		opGNUPushTLS, opGNUUninit:
		return true
	}
	return code >= op.DW_OP_dup && code <= op.DW_OP_ne || // the operators without operands
		code >= op.DW_OP_lit0 && code <= op.DW_OP_reg31 ||
		code >= op.DW_OP_breg0 && code <= op.DW_OP_breg31
}

// scan splits an expression into its operations.
func scan(expr []byte) ([]operation, error) {
	if len(expr) > maxExpression {
		return nil, fmt.Errorf("location expression of %d bytes", len(expr))
	}
	var list []operation
	for at := 0; at < len(expr); {
		o, err := decode(expr, at)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
		at = o.end
	}
	return list, nil
}

func decode(expr []byte, at int) (operation, error) {
	o := operation{code: op.Opcode(expr[at]), start: at}
	if !known(o.code) {
		return o, fmt.Errorf("location expression at %d: unknown operation %#x", at, uint8(o.code))
	}
	r := operandReader{data: expr, at: at + 1}
	if breg := o.code >= op.DW_OP_breg0 && o.code <= op.DW_OP_breg31; breg {
		o.args[0] = r.sleb()
	}
	for i, format := range []byte(operandFormat[o.code]) {
		switch format {
		case 'u':
			o.args[i] = r.uleb()
		case 's':
			o.args[i] = r.sleb()
		case 'h':
			o.args[i] = uint64(int64(int16(r.fixed(2))))
		case 'B':
			o.block = r.bytes(r.uleb())
		case 'b':
			o.block = r.bytes(r.fixed(1))
		default:
			o.args[i] = r.fixed(int(format - '0'))
		}
	}
	if r.short {
		return o, fmt.Errorf("location expression at %d: the operands of operation %#x run past its end", at, uint8(o.code))
	}
	o.end = r.at
	return o, nil
}

// operandReader reads operands; running past the end sets short.
type operandReader struct {
	data  []byte
	at    int
	short bool
}

func (r *operandReader) bytes(n uint64) []byte {
	if r.short || n > uint64(len(r.data)-r.at) {
		r.short = true
		return nil
	}
	b := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *operandReader) fixed(n int) uint64 {
	var wide [8]byte
	copy(wide[:], r.bytes(uint64(n)))
	return binary.LittleEndian.Uint64(wide[:])
}

func (r *operandReader) uleb() uint64 {
	v, _ := r.leb()
	return v
}

func (r *operandReader) sleb() uint64 {
	v, bits := r.leb()
	if bits < 64 && v&(1<<(bits-1)) != 0 {
		v |= ^uint64(0) << bits
	}
	return v
}

// leb returns the value and the number of its encoded bits, at least 7.
func (r *operandReader) leb() (v uint64, bits uint) {
	for {
		b := r.bytes(1)
		if b == nil {
			return 0, 7
		}
		if bits < 64 {
			v |= uint64(b[0]&0x7f) << bits
		}
		bits += 7
		if b[0]&0x80 == 0 {
			return v, bits
		}
	}
}
