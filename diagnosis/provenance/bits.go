package provenance

import (
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// allBits count of a value of which no code took a part.
const allBits = ^uint64(0)

// countedBits are the bits of operand k of a computation that count, if bits of its result do. Code that keeps several numbers in one word
// takes them apart, and puts them together, by masks and shifts. With other operations all of the operand counts.
func (f *numbers) countedBits(d flow.Definition, k flow.Location, bits uint64) uint64 {
	if counted, known := f.someBits(d, k, bits); known && counted != 0 {
		return counted
	}
	return allBits
}

// someBits is as countedBits, with no bits where none count. It is not known of operations but masks and shifts.
func (f *numbers) someBits(d flow.Definition, k flow.Location, bits uint64) (counted uint64, known bool) {
	inst := f.trace.Step(d.At).Inst
	by, known := f.other(d, k)
	if !known || k.Off != 0 {
		return 0, false
	}
	size := inst.Operands[0].Size
	shift := by & (8*uint64(max(size, 4)) - 1) // Intel SDM, volume 2, SAL/SAR/SHL/SHR
	if d.Part.Space == transfer.Flag {
		if inst.Op != "and" && inst.Op != "test" && inst.Op != "or" {
			return 0, false
		}
		if bits = allBits; d.Part.Off == transfer.Sign && d.Part.Size == 1 {
			bits = 1 << (8*size - 1)
		}
	} else {
		first := d.Part.Off
		if d.Part.Space == transfer.Memory {
			start, _ := f.trace.Address(d.At, 0)
			first = int(d.Part.Addr - start)
		}
		if first < 0 || first+d.Part.Size > size {
			return 0, false // it is not the first operand's
		}
		bits = low64(bits, d.Part.Size) << (8 * first)
	}
	switch inst.Op {
	case "and", "test":
		bits &= by
	case "or":
		bits &^= by
	case "sar":
		if sign := uint64(1) << (8*size - 1); bits>>(8*uint64(size)-shift) != 0 {
			bits = bits<<shift | sign
		} else {
			bits <<= shift
		}
	case "shr":
		bits <<= shift
	case "shl":
		bits >>= shift
	default:
		return 0, false
	}
	return low64(bits, k.Size), true
}

// other is the value of the operand of a computation that is not k, the second one if that makes a difference.
func (f *numbers) other(d flow.Definition, k flow.Location) (uint64, bool) {
	inst := f.trace.Step(d.At).Inst
	if inst == nil || len(inst.Operands) < 2 || inst.Operands[0].Size > 8 {
		return 0, false
	}
	first, second := &inst.Operands[0], &inst.Operands[1]
	size := first.Size
	if !first.IsMemory && !second.IsMemory && !second.IsImm && first.Reg == second.Reg { // all bits of the result are those of the operand
		return low64(allBits, size), inst.Op == "and" || inst.Op == "test"
	}
	isSecond := k.Space == transfer.Memory && second.IsMemory || k.Space == transfer.General && !second.IsMemory && !second.IsImm && x86.Reg(k.Num) == second.Reg
	switch {
	case second.IsImm:
		return low64(uint64(second.Imm), size), true
	case isSecond && (first.IsMemory || !first.Reg.General() || inst.Op != "and" && inst.Op != "or" && inst.Op != "test"):
		return 0, false
	case isSecond:
		return low64(f.trace.Register(d.At, first.Reg), size), true
	case second.IsMemory || !second.Reg.General():
		return 0, false
	}
	return low64(f.trace.Register(d.At, second.Reg), size), true
}

// filled chooses of two operands of an "or" the one that gave all the bits which count.
func (f *follower) filled(op string, v [2]uint64) (k int, ok bool) {
	if op != "or" || f.bits == allBits {
		return 0, false
	}
	switch first, second := v[0]&f.bits, v[1]&f.bits; {
	case second == 0 && first != 0:
		return 0, true
	case first == 0 && second != 0:
		return 1, true
	}
	return 0, false
}
