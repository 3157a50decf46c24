package watchpoint

import (
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// toldValue is the value of a watched word as it follows from the instruction that accessed it and
// the registers after it.
type toldValue struct {
	value uint64
	class int // codeTells...
}

// tellValue covers the instructions whose effect is beyond doubt: loads and stores of general
// registers, stores of constants, and arithmetic in memory. The last needs the value before.
func tellValue(inst *x86.Inst, regs *ptrace.Registers, w *tracee.Watch, before uint64) toldValue {
	if inst == nil {
		return toldValue{}
	}
	o := onlyOperand(inst)
	if o == nil {
		return toldValue{}
	}
	addr, known := addressOf(inst, o, regs)
	if !known || o.Size < 1 || o.Size > 8 || !overlaps(addr, uint64(o.Size), w) {
		return toldValue{}
	}
	a := accessed{inst, o, regs, w, addr}
	if value, ok := a.moved(); ok {
		class := codeTellsAll
		if addr > uint64(w.Addr) || addr+uint64(o.Size) < uint64(w.Addr)+uint64(w.Size) {
			class = codeTellsChange // of a part of the word
		}
		return toldValue{a.put(before, value), class}
	}
	if o.Access == evidence.Read {
		return toldValue{before, codeTellsChange}
	}
	if addr < uint64(w.Addr) || addr+uint64(o.Size) > uint64(w.Addr)+uint64(w.Size) {
		return toldValue{}
	}
	value, ok := a.computed(before >> (8 * (addr - uint64(w.Addr))) & a.mask())
	if !ok {
		return toldValue{}
	}
	return toldValue{a.put(before, value), codeTellsChange}
}

// onlyOperand returns the instruction's memory operand; nil if none is accessed, or several are.
func onlyOperand(inst *x86.Inst) *x86.Operand {
	var only *x86.Operand
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		if only != nil || o.Repeated || o.Conditional && inst.Op != "cmpxchg" && o.Access != evidence.Read {
			return nil
		}
		only = o
	}
	return only
}

// accessed is a memory operand of an instruction that was executed.
type accessed struct {
	inst *x86.Inst
	o    *x86.Operand
	regs *ptrace.Registers
	w    *tracee.Watch
	addr uint64
}

func (a *accessed) mask() uint64 { return ^uint64(0) >> (64 - 8*a.o.Size) }

// put replaces the bytes of the word that the operand covers.
func (a *accessed) put(word, value uint64) uint64 {
	for i := range uint64(a.o.Size) {
		at := a.addr + i - uint64(a.w.Addr)
		if at < uint64(a.w.Size) {
			word = word&^(0xff<<(8*at)) | value>>(8*i)&0xff<<(8*at)
		}
	}
	return word
}

// other returns the value of the other explicit operand: a constant, or a register that the
// instruction does not change.
func (a *accessed) other() (uint64, bool) {
	for i := range a.inst.Operands {
		o := &a.inst.Operands[i]
		switch {
		case o.IsMemory || o.Implicit:
		case o.IsImm:
			return uint64(o.Imm), true
		default:
			return a.register(o)
		}
	}
	return 0, false
}

// register returns a general register's value, but not that of ah, bh, ch or dh.
func (a *accessed) register(o *x86.Operand) (uint64, bool) {
	if !o.Reg.General() || o.Reg == x86.RSP || len(o.RegName) == 2 && o.RegName[1] == 'h' {
		return 0, false
	}
	return tracee.GeneralRegisters(a.regs)[o.Reg], true
}

// moved returns the operand's value if it was moved from or to a register, or is a constant.
func (a *accessed) moved() (uint64, bool) {
	switch a.inst.Op {
	case "mov", "movzx", "movsx", "movsxd", "push", "pop":
		return a.other()
	case "call":
		return a.inst.PC + uint64(a.inst.Len), a.o.Implicit
	}
	return 0, false
}

const zeroFlag = 0x40

// computed returns the result of arithmetic on the operand.
func (a *accessed) computed(before uint64) (uint64, bool) {
	switch a.inst.Op {
	case "inc":
		return before + 1, true
	case "dec":
		return before - 1, true
	case "neg":
		return -before, true
	case "not":
		return ^before, true
	}
	by, known := a.other()
	if !known {
		return 0, false
	}
	switch a.inst.Op {
	case "add":
		return before + by, true
	case "sub":
		return before - by, true
	case "and":
		return before & by, true
	case "or":
		return before | by, true
	case "xor":
		return before ^ by, true
	case "cmpxchg":
		if a.regs.Eflags&zeroFlag == 0 {
			return before, true
		}
		return by, true
	}
	return 0, false
}
