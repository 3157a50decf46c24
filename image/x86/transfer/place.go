package transfer

import (
	"strconv"
	"strings"

	"diagnose/image/x86"
)

// Space is a kind of storage.
type Space uint8

// The spaces.
const (
	// General registers; Num is an x86.Reg, and there are 8 bytes.
	General Space = iota
	// Vector registers, 64 bytes each; Num is the processor's number, from 0 to 31.
	Vector
	// Mask registers of AVX-512, 8 bytes each.
	Mask
	// Flag bits; each counts as a byte, at an offset that is one of the flags' constants.
	Flag
	// Float is the stack of the x87 with its control and status, and the mmx registers that lie in
	// it: one byte stands for all.
	Float
	// Memory operands; Num is the operand's index in Inst.Operands, and Off counts from its
	// address.
	Memory
)

// The flags, as offsets in the space Flag.
const (
	Carry = iota
	Parity
	Adjust
	Zero
	Sign
	Overflow
	Direction
	flags
)

// allFlags is the number of flags that arithmetic writes: all but the direction.
const allFlags = Direction

// VectorSize is the size of a vector register in bytes.
const VectorSize = 64

// Place is a run of bytes that an instruction reads or writes. Size 0, of memory, says that the extent is
// not known (the state that xsave writes).
type Place struct {
	Space Space
	Num   uint8
	Off   int
	Size  int
}

// Transfer is what the instruction does to the bytes of To.
type Transfer struct {
	To Place
	// From are the bytes of which those of To are made; none: they are constant.
	From []Place
	// Copy: each byte of To is the byte of From[0] at the same distance.
	Copy bool
	// Lane, if not 0, says that the bytes of To are made in groups of that size, each of the groups
	// at the same distance in From.
	Lane int
	// Maybe: To may keep its value. From has it then.
	Maybe bool
	// Undefined: the manuals do not say which value To gets (Intel SDM volume 1, appendix A).
	Undefined bool
}

func general(r x86.Reg, off, size int) Place { return Place{General, uint8(r), off, size} }

func flag(first, count int) Place { return Place{Space: Flag, Off: first, Size: count} }

var stack87 = Place{Space: Float, Size: 1}

// place is the storage of an operand; ok is false for an immediate, a control or segment register.
func place(inst *x86.Inst, n int) (p Place, ok bool) {
	o := &inst.Operands[n]
	switch {
	case o.IsMemory:
		return Place{Memory, uint8(n), 0, o.Size}, true
	case o.IsImm:
		return Place{}, false
	case o.Reg.General():
		off := 0
		if o.Size == 1 && len(o.RegName) == 2 && o.RegName[1] == 'h' {
			off = 1
		}
		return general(o.Reg, off, o.Size), true
	case o.Reg != x86.RegVector:
		return Place{}, false
	}
	return vectorPlace(o)
}

func vectorPlace(o *x86.Operand) (Place, bool) {
	for _, x := range []struct {
		prefix string
		space  Space
		size   int
	}{{"xmm", Vector, 16}, {"ymm", Vector, 32}, {"zmm", Vector, 64}, {"mm", Float, 0}, {"st", Float, 0}, {"k", Mask, 8}} {
		digits, ok := strings.CutPrefix(o.RegName, x.prefix)
		if !ok {
			continue
		}
		if x.space == Float {
			return stack87, true
		}
		n, err := strconv.ParseUint(digits, 10, 8)
		return Place{x.space, uint8(n), 0, x.size}, err == nil
	}
	return Place{}, false
}

// part is a run of bytes in a place.
func (p Place) part(off, size int) Place {
	p.Off += off
	p.Size = size
	return p
}
