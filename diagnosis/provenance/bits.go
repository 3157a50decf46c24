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
func (f *follower) countedBits(d flow.Definition, k flow.Location, bits uint64) uint64 {
	inst := f.trace.Step(d.At).Inst
	by, known := f.other(d, k)
	if inst == nil || !known || d.Part.Off != 0 || k.Off != 0 {
		return allBits
	}
	bits = low64(bits, d.Part.Size)
	shift := by & (8*uint64(max(d.Part.Size, 4)) - 1) // Intel SDM, volume 2, SAL/SAR/SHL/SHR
	switch inst.Op {
	case "and":
		bits &= by
	case "or":
		bits &^= by
	case "shr", "sar":
		bits <<= shift
	case "shl":
		bits >>= shift
	default:
		return allBits
	}
	if bits = low64(bits, k.Size); bits == 0 {
		return allBits
	}
	return bits
}

// other is the value of the operand of a computation that is not k, the second one if that makes a difference.
func (f *follower) other(d flow.Definition, k flow.Location) (uint64, bool) {
	inst := f.trace.Step(d.At).Inst
	if inst == nil || len(inst.Operands) < 2 {
		return 0, false
	}
	first, second := &inst.Operands[0], &inst.Operands[1]
	isSecond := k.Space == transfer.Memory && second.IsMemory || k.Space == transfer.General && !second.IsMemory && !second.IsImm && x86.Reg(k.Num) == second.Reg
	switch {
	case second.IsImm:
		return low64(uint64(second.Imm), d.Part.Size), true
	case isSecond && (first.IsMemory || !first.Reg.General() || inst.Op != "and" && inst.Op != "or"):
		return 0, false
	case isSecond:
		return low64(f.trace.Register(d.At, first.Reg), d.Part.Size), true
	case second.IsMemory || !second.Reg.General():
		return 0, false
	}
	return low64(f.trace.Register(d.At, second.Reg), d.Part.Size), true
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
