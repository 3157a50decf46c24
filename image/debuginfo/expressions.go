package debuginfo

import (
	"encoding/binary"
	"fmt"
)

// portable returns an expression that can be evaluated outside its unit:
// operations that index .debug_addr are replaced by operations that contain the
// address. References to types remain; Variable.BaseType resolves them.
func (u *unit) portable(expr []byte) ([]byte, error) {
	return expressionRewriter{u}.rewrite(expr, 0)
}

// expressionRewriter makes expressions of a unit portable.
type expressionRewriter struct{ unit *unit }

func (w expressionRewriter) rewrite(expr []byte, nesting int) ([]byte, error) {
	if nesting > 8 {
		return nil, w.unit.src.bad(w.unit.section, w.unit.offset, "location expressions nested too deeply")
	}
	r := reader{data: expr}
	var out []byte // nil as long as nothing was replaced
	for r.left() > 0 {
		start := r.pos
		op := r.u8()
		var replaced []byte
		var err error
		switch op {
		case opAddrx, opGNUAddrIndex:
			replaced, err = w.indexedOp(opAddr, r.uleb())
		case opConstx, opGNUConstIndex:
			replaced, err = w.indexedOp(opConst8u, r.uleb())
		case opEntryValue, opGNUEntryValue:
			var inner []byte
			if inner, err = w.rewrite(r.bytes(r.uleb()), nesting+1); err == nil {
				replaced = append(binary.AppendUvarint([]byte{op}, uint64(len(inner))), inner...)
			}
		default:
			err = w.skipOperands(&r, op)
		}
		if err != nil {
			return nil, err
		}
		if r.bad {
			return nil, w.unit.src.bad(w.unit.section, w.unit.offset, "location expression is cut off")
		}
		switch {
		case replaced != nil && out == nil:
			out = append(append(make([]byte, 0, len(expr)+16), expr[:start]...), replaced...)
		case replaced != nil:
			out = append(out, replaced...)
		case out != nil:
			out = append(out, expr[start:r.pos]...)
		}
	}
	if out == nil {
		return expr, nil
	}
	return out, nil
}

func (w expressionRewriter) indexedOp(op byte, index uint64) ([]byte, error) {
	addr, err := w.unit.indexedAddr(index)
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint64([]byte{op}, addr), nil
}

const (
	opConst1u         = 0x08
	opConst2u         = 0x0a
	opPick            = 0x15
	opConstu          = 0x10
	opConsts          = 0x11
	opPlusUconst      = 0x23
	opBra             = 0x28
	opSkip            = 0x2f
	opReg0            = 0x50
	opBreg0           = 0x70
	opBreg31          = 0x8f
	opRegx            = 0x90
	opFbreg           = 0x91
	opBregx           = 0x92
	opPiece           = 0x93
	opDerefSize       = 0x94
	opXderefSize      = 0x95
	opCall2           = 0x98
	opCall4           = 0x99
	opCallRef         = 0x9a
	opBitPiece        = 0x9d
	opImplicitValue   = 0x9e
	opImplicitPointer = 0xa0
	opEntryValue      = 0xa3
	opConstType       = 0xa4
	opRegvalType      = 0xa5
	opDerefType       = 0xa6
	opXderefType      = 0xa7
	opConvert         = 0xa8
	opReinterpret     = 0xa9
	opGNUImplicitPtr  = 0xf2
	opGNUEntryValue   = 0xf3
	opGNUConstType    = 0xf4
	opGNURegvalType   = 0xf5
	opGNUDerefType    = 0xf6
	opGNUConvert      = 0xf7
	opGNUReinterpret  = 0xf9
	opGNUParameterRef = 0xfa
	opGNUVariable     = 0xfd
)

// skipOperands skips an operation's operands (DWARF 5 section 7.7.1).
func (w expressionRewriter) skipOperands(r *reader, op uint8) error {
	offset := uint64(4)
	if w.unit.wide {
		offset = 8
	}
	switch op {
	case opAddr, opConst8u, opConst8u + 1:
		r.skip(8)
	case opConst1u, opConst1u + 1, opPick, opDerefSize, opXderefSize:
		r.skip(1)
	case opConst2u, opConst2u + 1, opBra, opSkip, opCall2:
		r.skip(2)
	case opConst4u, opConst4u + 1, opCall4, opGNUParameterRef:
		r.skip(4)
	case opConstu, opConsts, opPlusUconst, opRegx, opFbreg, opPiece, opConvert, opReinterpret,
		opGNUConvert, opGNUReinterpret:
		r.skipLEB()
	case opBregx, opBitPiece, opRegvalType, opGNURegvalType:
		r.skipLEB()
		r.skipLEB()
	case opCallRef, opGNUVariable:
		r.skip(offset)
	case opImplicitValue:
		r.skip(r.uleb())
	case opImplicitPointer, opGNUImplicitPtr:
		r.skip(offset)
		r.skipLEB()
	case opConstType, opGNUConstType:
		r.skipLEB()
		r.skip(uint64(r.u8()))
	case opDerefType, opXderefType, opGNUDerefType:
		r.skip(1)
		r.skipLEB()
	default:
		return w.skipPlain(r, op)
	}
	return nil
}

// skipPlain skips the operands of operations that ranges of codes cover.
func (w expressionRewriter) skipPlain(r *reader, op uint8) error {
	switch {
	case op >= opBreg0 && op <= opBreg31:
		r.skipLEB()
	case op == 0x06, op >= 0x12 && op <= 0x6f, op == 0x96, op == 0x97, op == opFormTLSAddress,
		op == 0x9c, op == 0x9f, op == opGNUPushTLS, op == 0xf0:
	default:
		return w.unit.src.unsupported(fmt.Sprintf("location expression with the unknown operation %#x", op))
	}
	return nil
}
