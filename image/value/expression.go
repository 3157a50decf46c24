package value

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// maxPiece bounds the size of one piece of a variable.
const maxPiece = maxObject

// maxEntryValues bounds how many frames outward an entry value is followed.
const maxEntryValues = 4

// evaluator evaluates DWARF expressions against one frame. delve's op package
// does the arithmetic. Operations that it lacks are rewritten into operations
// that it has, so that a variable is evaluated correctly or not at all.
type evaluator struct {
	frame     *Frame
	frameBase []byte
	// variable resolves references to types and variables; nil when the
	// expression is not a variable's.
	variable *debuginfo.Variable
	// nesting counts the entry values and frame bases being resolved.
	nesting int
}

// locate evaluates a location description to one or more pieces.
func (e *evaluator) locate(expr []byte) ([]piece, error) {
	list, err := scan(expr)
	if err != nil {
		return nil, err
	}
	var pieces []piece
	start := 0
	for i, o := range list {
		switch o.code {
		case op.DW_OP_piece, op.DW_OP_bit_piece:
			p, err := e.composite(list[start:i], o)
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, p)
			start = i + 1
		case op.DW_OP_bra, op.DW_OP_skip:
			if start > 0 {
				return nil, errors.New("location expression branches between pieces")
			}
		}
	}
	if start == 0 {
		return []piece{e.single(list)}, nil
	}
	if start < len(list) {
		return nil, fmt.Errorf("location expression at %d: operations after the last piece", list[start].start)
	}
	return pieces, nil
}

// composite returns the piece that the operations before o describe.
func (e *evaluator) composite(list []operation, o operation) (piece, error) {
	bits := o.args[0]
	if o.code == op.DW_OP_piece {
		if bits > maxPiece {
			return piece{}, fmt.Errorf("location expression at %d: a piece of %d bytes", o.start, bits)
		}
		bits *= 8
	}
	if bits%8 != 0 || bits/8 > maxPiece || o.code == op.DW_OP_bit_piece && o.args[1] != 0 {
		return piece{}, unavailable("kept in pieces that are not whole bytes")
	}
	p := piece{kind: pieceMissing, err: optimizedOut("")}
	if len(list) > 0 {
		p = e.single(list)
	}
	p.size = int64(bits / 8)
	return p, nil
}

// single evaluates a location description without pieces.
func (e *evaluator) single(list []operation) piece {
	p, err := e.describe(list)
	if err != nil {
		p = piece{kind: pieceMissing, err: err}
	}
	p.size = -1
	return p
}

func (e *evaluator) describe(list []operation) (piece, error) {
	if len(list) == 0 {
		return piece{}, optimizedOut("")
	}
	last := list[len(list)-1]
	switch last.code {
	case op.DW_OP_stack_value:
		v, err := e.value(list[:len(list)-1])
		return piece{kind: pieceBytes, bytes: binary.LittleEndian.AppendUint64(nil, v)}, err
	case op.DW_OP_implicit_value:
		return piece{kind: pieceBytes, bytes: last.block}, alone(list)
	case opImplicitPointer, opGNUImplicitPointer:
		return piece{}, &implicitPointer{target: last.args[0], offset: int64(last.args[1])}
	case opGNUUninit:
		return piece{}, unavailable("not initialized yet")
	}
	if number, ok := registerOperand(last); ok {
		if isVector(number) {
			return piece{kind: pieceVector, number: number - firstVector}, alone(list)
		}
		if number > uint64(image.RIP) {
			return piece{}, registerLost(number)
		}
		return piece{kind: pieceRegister, number: number}, alone(list)
	}
	v, err := e.value(list)
	return piece{kind: pieceMemory, addr: evidence.Addr(v)}, err
}

// alone reports operations before one that must be the only one.
func alone(list []operation) error {
	if len(list) != 1 {
		return fmt.Errorf("location expression: operation %#x is not the only one", uint8(list[len(list)-1].code))
	}
	return nil
}

func registerOperand(o operation) (number uint64, ok bool) {
	switch {
	case o.code >= op.DW_OP_reg0 && o.code <= op.DW_OP_reg31:
		return uint64(o.code - op.DW_OP_reg0), true
	case o.code == op.DW_OP_regx:
		return o.args[0], true
	}
	return 0, false
}

// register returns a register's value; for a vector register its low 8 bytes.
func (e *evaluator) register(number uint64) (uint64, error) {
	if isVector(number) {
		data, err := vectorBytes(e.frame, number-firstVector)
		if err != nil {
			return 0, err
		}
		return binary.LittleEndian.Uint64(data), nil
	}
	if number > uint64(image.RIP) {
		return 0, registerLost(number)
	}
	v, ok := e.frame.Registers.Get(image.Register(number))
	if !ok {
		return 0, registerLost(number)
	}
	return v, nil
}

func (e *evaluator) cfa() (uint64, error) {
	if e.frame.CFA == 0 {
		return 0, unavailable("the frame's canonical address is not known")
	}
	return uint64(e.frame.CFA), nil
}

func (e *evaluator) address(link uint64) (uint64, error) {
	if e.frame.Module == nil {
		return 0, unavailable("the frame's object is not known")
	}
	return uint64(e.frame.Module.Addr(link)), nil
}

// base evaluates the frame base. A register as its location means the
// register's value (DWARF 5 section 3.3.5).
func (e *evaluator) base() (uint64, error) {
	if len(e.frameBase) == 0 {
		return 0, unavailable("the function's frame base is not known")
	}
	if e.nesting >= maxEntryValues {
		return 0, errors.New("location expression: frame bases nested too deeply")
	}
	inner := evaluator{frame: e.frame, variable: e.variable, nesting: e.nesting + 1}
	list, err := scan(e.frameBase)
	if err != nil {
		return 0, err
	}
	switch p := inner.single(list); p.kind {
	case pieceMemory:
		return uint64(p.addr), nil
	case pieceRegister:
		return inner.register(p.number)
	case pieceBytes:
		return typedConstant(p.bytes)
	case pieceMissing:
		return 0, p.err
	}
	return 0, unavailable("the function's frame base is not known")
}
