package stackjudge

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// mostFunctions bounds the functions whose code is read.
const mostFunctions = 256

// function is the code of a function with the positions of its registers.
type function struct {
	module *image.Module
	entry  evidence.Addr
	*heights.Graph
	at []*heights.Positions
}

// functionAt reads the function that covers pc; nil: there is none, or its extent is not known.
func (j *judge) functionAt(pc evidence.Addr) *function {
	m := j.Process.ModuleAt(pc)
	if m == nil {
		return nil
	}
	code := j.Code(m, pc)
	if len(code) == 0 {
		return nil
	}
	entry := code[0].Addr
	if f, ok := j.functions[entry]; ok {
		return f
	}
	if len(j.functions) >= mostFunctions {
		return nil
	}
	f := &function{module: m, entry: entry, Graph: heights.New(code)}
	f.at = f.Heights()
	j.functions[entry] = f
	return f
}

// height is how far the stack pointer is from the CFA before instruction i; false: the code does not tell.
func (f *function) height(i int) (int64, bool) {
	if f.at[i] == nil || f.at[i][x86.RSP].Origin != heights.FromCFA {
		return 0, false
	}
	return f.at[i][x86.RSP].Offset, true
}

// callBefore is the index of the call that returns to pc.
func (f *function) callBefore(pc evidence.Addr) (int, bool) {
	i, ok := f.Covering(uint64(pc) - 1)
	if !ok {
		return 0, false
	}
	inst := &f.Insts[i]
	return i, inst.Flow == x86.FlowCall && inst.PC+uint64(inst.Len) == uint64(pc)
}

// left reports whether the return address of a call is where the function's last call left it below its frame.
// Then a frame of the function was certainly there.
func (f *function) left(m image.Memory, cfa evidence.Addr) bool {
	for i := range f.Insts {
		inst := &f.Insts[i]
		if inst.Flow != x86.FlowCall {
			continue
		}
		height, ok := f.height(i)
		if !ok {
			continue
		}
		v, err := image.Uint64(m, cfa+evidence.Addr(height)-8)
		if err == nil && v == inst.PC+uint64(inst.Len) {
			return true
		}
	}
	return false
}

// byFramePointer reports whether an epilogue takes the stack pointer from another register, which a callee may
// have restored wrong.
func (f *function) byFramePointer() bool {
	for i := range f.Insts {
		inst := &f.Insts[i]
		switch inst.Op {
		case "leave":
			return true
		case "mov", "lea":
			ops := inst.Operands
			if len(ops) < 2 || !heights.WholeRegister(&ops[0]) || ops[0].Reg != x86.RSP {
				continue
			}
			if base := ops[1].Reg; !ops[1].IsMemory && base != x86.RSP || ops[1].IsMemory && ops[1].Memory.Base != x86.RSP {
				return true
			}
		}
	}
	return false
}

// kept are the registers that functions restore for their callers, without the stack pointer (psABI, figure 3.4).
var kept = []x86.Reg{x86.RBX, x86.RBP, x86.R12, x86.R13, x86.R14, x86.R15}
