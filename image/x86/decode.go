package x86

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// DecodeError says that bytes are no known instruction.
type DecodeError struct {
	PC     uint64
	Bytes  []byte
	Reason string
	// Len is the number of bytes to skip.
	Len int
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("x86: bytes % x at %#x: %s", e.Bytes, e.PC, e.Reason)
}

// Decode decodes the instruction at the start of code, which is at address pc.
// The error is a *DecodeError. Its length is the best guess of where decoding
// can continue, never 0.
//
// An unknown instruction with VEX or EVEX is no error: its name is that of its
// encoding ("vex.66.0f38.e0"), and everything that its fields can name counts
// as possibly read and written.
func Decode(code []byte, pc uint64) (Inst, error) {
	var scratch [maxOperands]Operand
	d := decoder{slab: scratch[:0:len(scratch)]}
	var inst Inst
	err := d.decode(&inst, code, pc)
	inst.Operands = append([]Operand(nil), inst.Operands...)
	return inst, err
}

// decoder decodes instructions one after the other and allocates their operands
// from one slab.
type decoder struct {
	slab []Operand
	// The current instruction.
	l     layout
	x     x86asm.Inst
	code  []byte
	first int // of its operands in slab
	inst  *Inst
}

func (d *decoder) decode(inst *Inst, code []byte, pc uint64) error {
	d.l = layout{}
	d.first = len(d.slab)
	d.inst = inst
	*inst = Inst{PC: pc}
	if len(code) == 0 {
		return &DecodeError{PC: pc, Reason: "no bytes", Len: 1}
	}
	l := &d.l
	if reason := l.parse(code, pc); reason != "" {
		return decodeError(code, pc, reason, 1)
	}
	d.code = code[:l.len:l.len]
	inst.Len, inst.Bytes = l.len, d.code
	switch {
	case d.extension():
	case d.library():
	case l.enc == encLegacy:
		*inst = Inst{PC: pc}
		return decodeError(code, pc, "not a known instruction", l.len)
	default:
		d.unknownVector()
	}
	d.finish()
	return nil
}

func decodeError(code []byte, pc uint64, reason string, size int) *DecodeError {
	return &DecodeError{PC: pc, Bytes: code[:min(len(code), max(size, 8))], Reason: reason, Len: size}
}

// finish sets the instruction's operands and the style for Text.
func (d *decoder) finish() {
	d.inst.Operands = d.slab[d.first:len(d.slab):len(d.slab)]
	d.inst.style.set(d)
}
