package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// followSteps bounds a function that is followed. The functions of interest have two to ten
// instructions.
const followSteps = 32

// follower carries out the few instructions that a function needs to return a
// constant or a member of its object.
type follower struct {
	memory image.Memory
	regs   map[x86.Reg]uint64
	// stack holds what the function itself stored, by the address in a stack
	// that does not exist.
	stack map[uint64]uint64
}

// followStack is the stack pointer that a follower starts with: an address
// that is not canonical, so that it is never taken for memory of the process.
const followStack = 0x8000_0000_0000_0000

// follow returns what a member function would return if it only loads and returns: no call, no
// branch, no arithmetic except additions. ok is false at the first other instruction.
func follow(mem image.Memory, fn, object evidence.Addr) (result evidence.Addr, ok bool) {
	f := follower{memory: mem, regs: map[x86.Reg]uint64{x86.RDI: uint64(object), x86.RSP: followStack}, stack: map[uint64]uint64{}}
	for range followSteps {
		inst, err := decode(mem, fn)
		if err != nil || inst == nil || inst.Len <= 0 {
			return 0, false
		}
		if inst.Flow == x86.FlowReturn {
			v, ok := f.regs[x86.RAX]
			return evidence.Addr(v), ok && f.regs[x86.RSP] == followStack
		}
		if inst.Flow != x86.FlowNext || !f.step(inst) {
			return 0, false
		}
		fn += evidence.Addr(inst.Len)
	}
	return 0, false
}

func (f *follower) step(inst *x86.Inst) bool {
	ops := inst.Operands
	switch inst.Op {
	case "endbr64", "nop":
		return true
	case "push":
		v, ok := f.value(&ops[0])
		f.regs[x86.RSP] -= 8
		f.stack[f.regs[x86.RSP]] = v
		return ok || ops[0].Reg == x86.RBP
	case "pop":
		v, ok := f.stack[f.regs[x86.RSP]]
		f.regs[x86.RSP] += 8
		f.regs[ops[0].Reg] = v
		return ok && !ops[0].IsMemory
	case "leave":
		f.regs[x86.RSP] = f.regs[x86.RBP] + 8
		return true
	}
	if len(ops) < 2 {
		return false
	}
	switch inst.Op {
	case "mov":
		v, ok := f.value(&ops[1])
		if ops[1].IsImm && ops[0].Size == 4 && !ops[0].IsMemory {
			// A 32-bit destination clears the upper half.
			f.regs[ops[0].Reg] = uint64(uint32(v))
			return true
		}
		return ok && f.set(&ops[0], v)
	case "lea":
		addr, ok := f.address(&ops[1].Memory)
		return ok && f.set(&ops[0], addr)
	case "add", "sub":
		a, okA := f.value(&ops[0])
		b, okB := f.value(&ops[1])
		if inst.Op == "sub" {
			b = -b
		}
		return okA && okB && f.set(&ops[0], a+b)
	}
	return false
}

func (f *follower) register(r x86.Reg) (uint64, bool) {
	v, ok := f.regs[r]
	return v, ok
}

func (f *follower) address(m *x86.Memory) (uint64, bool) {
	if m.Segment != x86.SegNone {
		return 0, false
	}
	return m.Address(f.register)
}

func (f *follower) value(op *x86.Operand) (uint64, bool) {
	switch {
	case op.IsImm:
		return uint64(op.Imm), true
	case op.Size != 8:
		return 0, false
	case !op.IsMemory:
		return f.register(op.Reg)
	}
	addr, ok := f.address(&op.Memory)
	if !ok {
		return 0, false
	}
	if v, ok := f.stack[addr]; ok {
		return v, true
	}
	v, err := image.Uint64(f.memory, evidence.Addr(addr))
	return v, err == nil
}

// set writes a whole register or a slot of the function's own stack.
func (f *follower) set(op *x86.Operand, v uint64) bool {
	if op.Size != 8 {
		return false
	}
	if !op.IsMemory {
		f.regs[op.Reg] = v
		return op.Reg <= x86.R15
	}
	addr, ok := f.address(&op.Memory)
	if !ok || evidence.Addr(addr).Canonical() {
		return false
	}
	f.stack[addr] = v
	return true
}
