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
	code := inst.Bytes
	switch {
	case inst.Flow == x86.FlowCall:
		next := inst.PC + uint64(inst.Len)
		a.Write([]byte{0x48, 0x8d, 0x64, 0x24, 0xf8}) // lea -8(%rsp), %rsp
		a.Write([]byte{0xc7, 0x04, 0x24})             // movl next, (%rsp)
		a.Word(next)
		a.Write([]byte{0xc7, 0x44, 0x24, 0x04}) // movl its upper half, 4(%rsp)
		a.Word(next >> 32)
		if inst.HasTarget {
			a.WriteByte(0xe9)
			return a.Relative(inst.Target, 4)
		}
		code = bytes.Clone(code)
		code[IndirectCall(inst)+1] += 2 << 3 // jmp has /4 where call has /2
	case inst.HasTarget && CountedBranch(inst):
		a.Write([]byte{code[0], 2, 0xeb, 5, 0xe9}) // to the jump after the jump
		return a.Relative(inst.Target, 4)
	case inst.HasTarget:
		a.Write(BranchOpcode(inst))
		return a.Relative(inst.Target, 4)
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Memory.Base != x86.RIP {
			continue
		}
		target := inst.PC + uint64(inst.Len) + uint64(o.Memory.Disp)
		want := binary.LittleEndian.AppendUint32(nil, uint32(o.Memory.Disp))
		at := bytes.Index(code, want)
		if at < 0 || at != bytes.LastIndex(code, want) {
			return ErrImpossible
		}
		a.Write(code[:at])
		if err := a.Relative(target, inst.Len-at); err != nil {
			return err
		}
		a.Write(code[at+4:])
		return nil
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
