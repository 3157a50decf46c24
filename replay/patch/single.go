package patch

import (
	"slices"

	"diagnose/image/x86"
)

// MostInstruction is the length of the longest instruction in bytes (Intel SDM volume 2, 2.3.11).
const MostInstruction = 15

// SingleWindow returns a window of one instruction, the first of code, which is at pc. No other window is safe in code that
// the program writes while it runs, for code may lead to any instruction. nil: the instruction is too short, cannot be executed
// elsewhere, or is one that such programs change in place.
func SingleWindow(code []byte, pc uint64) *Window {
	inst, err := x86.Decode(code, pc)
	if err != nil || inst.Len < JumpSize || !Movable(&inst) || changes(&inst) {
		return nil
	}
	return &Window{Start: pc, End: pc + uint64(inst.Len), Moved: []x86.Inst{inst}}
}

// changes reports whether just-in-time compilers give an instruction another target or constant while it is in use: calls
// and jumps, loads of constants, and comparisons of memory with one (the barrier at the entry of HotSpot's methods).
func changes(inst *x86.Inst) bool {
	if inst.Flow != x86.FlowNext && inst.Flow != x86.FlowBranch {
		return true
	}
	constant := slices.ContainsFunc(inst.Operands, func(o x86.Operand) bool { return o.IsImm })
	memory := slices.ContainsFunc(inst.Operands, func(o x86.Operand) bool { return o.IsMemory })
	return inst.Flow == x86.FlowNext && constant && (inst.Op == "mov" || inst.Op == "movabs" || inst.Op == "cmp" && memory)
}
