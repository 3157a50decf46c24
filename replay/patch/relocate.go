package patch

import (
	"bytes"
	"encoding/binary"

	"diagnose/image/x86"
)

// Code is instructions of the program for a place whose address is not known yet. The recorder makes it for the engine, which
// chooses the place; a probe knows its place, and resolves the code at once.
type Code struct {
	Bytes []byte
	// Links are the displacements to fill in, in ascending order.
	Links []Link
}

// Link is a displacement of 32 bits from the end of its instruction to an address of the program.
type Link struct {
	At     int // offset of the displacement in the code
	End    int // offset of the end of its instruction
	Target uint64
}

// Move appends an instruction with the effect that it has at its own address. It must be Movable. The error is
// ErrImpossible if its displacement cannot be told apart from its other bytes.
func (c *Code) Move(inst *x86.Inst) error {
	code := inst.Bytes
	switch {
	case inst.Flow == x86.FlowCall:
		next := inst.PC + uint64(inst.Len)
		c.append(0x48, 0x8d, 0x64, 0x24, 0xf8) // lea -8(%rsp), %rsp
		c.append(0xc7, 0x04, 0x24)             // movl next, (%rsp)
		c.word(next)
		c.append(0xc7, 0x44, 0x24, 0x04) // movl its upper half, 4(%rsp)
		c.word(next >> 32)
		if inst.HasTarget {
			c.Jump(inst.Target)
			return nil
		}
		code = bytes.Clone(code)
		code[IndirectCall(inst)+1] += 2 << 3 // jmp has /4 where call has /2
	case inst.HasTarget && CountedBranch(inst):
		c.append(code[0], 2, 0xeb, 5) // to the jump after the jump
		c.Jump(inst.Target)
		return nil
	case inst.HasTarget:
		c.append(BranchOpcode(inst)...)
		c.link(inst.Target, 4)
		return nil
	}
	at, target, err := Displacement(inst)
	if err != nil {
		return err
	}
	start := len(c.Bytes)
	c.append(code...)
	if at > 0 {
		c.Links = append(c.Links, Link{At: start + at, End: len(c.Bytes), Target: target})
	}
	return nil
}

// Jump appends a jump to an address of the program.
func (c *Code) Jump(to uint64) {
	c.append(0xe9)
	c.link(to, 4)
}

// Relative appends an instruction that ends with a displacement, from its other bytes and the target.
func (c *Code) Relative(target uint64, head ...byte) {
	c.append(head...)
	c.link(target, 4)
}

// Resolve returns the code for its address. The error is ErrImpossible if a target is out of reach.
func (c *Code) Resolve(base uint64) ([]byte, error) {
	code := bytes.Clone(c.Bytes)
	for _, l := range c.Links {
		d := int64(l.Target - (base + uint64(l.End)))
		if d != int64(int32(d)) {
			return nil, ErrImpossible
		}
		binary.LittleEndian.PutUint32(code[l.At:], uint32(d))
	}
	return code, nil
}

func (c *Code) append(code ...byte) { c.Bytes = append(c.Bytes, code...) }

func (c *Code) word(v uint64) { c.Bytes = binary.LittleEndian.AppendUint32(c.Bytes, uint32(v)) }

// link appends the displacement of a target, for an instruction that ends end bytes after the displacement's start.
func (c *Code) link(target uint64, end int) {
	at := len(c.Bytes)
	c.word(0)
	c.Links = append(c.Links, Link{At: at, End: at + end, Target: target})
}

// Displacement returns the offset in an instruction of the displacement of its operand that is relative to the instruction's
// end, and the operand's address; 0: it has no such operand. The error is ErrImpossible if more than one place may be the
// displacement.
func Displacement(inst *x86.Inst) (at int, target uint64, err error) {
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Memory.Base != x86.RIP {
			continue
		}
		target = o.Memory.Target
		distance := uint32(target - inst.PC - uint64(inst.Len))
		for i := 2; i+4 <= inst.Len; i++ {
			const relative, fields = 5, 0xc7 // ModRM: mod 0, rm 5
			if inst.Bytes[i-1]&fields != relative || binary.LittleEndian.Uint32(inst.Bytes[i:]) != distance {
				continue
			}
			if at != 0 {
				return 0, 0, ErrImpossible
			}
			at = i
		}
		if at == 0 {
			return 0, 0, ErrImpossible
		}
		return at, target, nil
	}
	return 0, 0, nil
}

// Movable reports whether an instruction has the same effect at another address, once Code.Move has changed it.
func Movable(inst *x86.Inst) bool {
	switch inst.Flow {
	case x86.FlowNext:
		// It may trap for the recorder, which looks at its address.
		return inst.Op != "rdtsc" && inst.Op != "rdtscp"
	case x86.FlowBranch, x86.FlowJump:
		return !inst.HasTarget || BranchOpcode(inst) != nil || CountedBranch(inst)
	case x86.FlowCall:
		return inst.HasTarget && inst.Bytes[0] == 0xe8 || !inst.HasTarget && IndirectCall(inst) >= 0
	case x86.FlowReturn:
		return inst.Op == "ret"
	}
	return false
}

// Independent reports whether an instruction has the same effect at another address as it is.
func Independent(inst *x86.Inst) bool {
	if inst.Flow != x86.FlowNext || !Movable(inst) {
		return false
	}
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && o.Memory.Base == x86.RIP {
			return false
		}
	}
	return true
}

// BranchOpcode returns the opcode of the form with 32 bits of displacement; nil if there is none.
func BranchOpcode(inst *x86.Inst) []byte {
	switch c := inst.Bytes[0]; {
	case c == 0xe9 || c == 0xeb:
		return []byte{0xe9}
	case c >= 0x70 && c <= 0x7f:
		return []byte{0x0f, c + 0x10}
	case c == 0x0f && inst.Bytes[1]&0xf0 == 0x80:
		return inst.Bytes[:2]
	}
	return nil
}

// CountedBranch reports whether the branch is loop, loope, loopne or jrcxz, which have only 8 bits
// of displacement.
func CountedBranch(inst *x86.Inst) bool {
	return inst.Len == 2 && inst.Bytes[0] >= 0xe0 && inst.Bytes[0] <= 0xe3
}

// IndirectCall returns the index of the opcode of a call through a register or memory, which can
// be turned into a jump. -1: it is another instruction, or depends on the stack pointer, which the
// call's replacement changes first.
func IndirectCall(inst *x86.Inst) int {
	i := 0
	if inst.Bytes[0] == 0x3e { // notrack
		i++
	}
	if i < inst.Len && inst.Bytes[i]&0xf0 == 0x40 {
		i++
	}
	if i+1 >= inst.Len || inst.Bytes[i] != 0xff || inst.Bytes[i+1]>>3&7 != 2 {
		return -1
	}
	for j := range inst.Operands {
		o := &inst.Operands[j]
		if !o.Implicit && (o.Reg == x86.RSP || o.IsMemory && o.Memory.Base == x86.RSP) {
			return -1
		}
	}
	return i
}

// Address appends lea operand, %rcx, without the segment's base. The program's registers must be unchanged. The error is
// ErrImpossible if the operand has a form that lea lacks.
func (c *Code) Address(m *x86.Memory) error {
	const rcx = 1
	switch {
	case m.Base == x86.RIP:
		c.Relative(m.Target, 0x48, 0x8d, rcx<<3|5)
		return nil
	case m.Absolute:
		c.Bytes = binary.LittleEndian.AppendUint64(append(c.Bytes, 0x48, 0xb8+rcx), m.Target)
		return nil
	case m.Disp != int64(int32(m.Disp)):
		return ErrImpossible
	}
	rex, base, index, scale := byte(0x48), byte(5), byte(4), byte(0)
	mod := byte(0) // without a base, with 32 bits of displacement
	if m.Base != x86.RegNone {
		mod, base = 0x80, m.Base.Encoding()
		rex |= base >> 3
		base &= 7
	}
	if m.Index != x86.RegNone {
		index = m.Index.Encoding()
		rex |= index >> 3 << 1
		index &= 7
		for n := m.Scale; n > 1; n /= 2 {
			scale++
		}
	}
	c.append(rex, 0x8d, mod|rcx<<3|4, scale<<6|index<<3|base)
	c.word(uint64(m.Disp))
	return nil
}
