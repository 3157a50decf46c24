package patch

import (
	"bytes"
	"encoding/binary"

	"diagnose/image/x86"
)

// Assembler writes code that is executed at Base.
type Assembler struct {
	bytes.Buffer
	Base uint64
}

// Here returns the address of the next instruction to append.
func (a *Assembler) Here() uint64 { return a.Base + uint64(a.Len()) }

// Word appends 4 bytes.
func (a *Assembler) Word(v uint64) { a.Write(binary.LittleEndian.AppendUint32(nil, uint32(v))) }

// Move appends an instruction of the program with the effect that it has at its own address.
func (a *Assembler) Move(inst *x86.Inst) error {
	var c Code
	if err := c.Move(inst); err != nil {
		return err
	}
	code, err := c.Resolve(a.Here())
	if err != nil {
		return err
	}
	a.Write(code)
	return nil
}

// Relative appends the displacement of a target, for an instruction that ends end bytes after the
// displacement's start.
func (a *Assembler) Relative(target uint64, end int) error {
	d := int64(target - (a.Base + uint64(a.Len()) + uint64(end)))
	if d != int64(int32(d)) {
		return ErrImpossible
	}
	a.Word(uint64(d))
	return nil
}
