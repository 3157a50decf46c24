package x86

import (
	"slices"

	"diagnose/evidence"
)

// Reg is a general register by its full-width name: eax, ax, al and ah are
// parts of RAX. The numbers are DWARF's (System V ABI, figure 3.36).
type Reg uint8

// The registers; RegNone is no register, RegVector any xmm, ymm, zmm, mmx, x87 or mask register.
const (
	RAX Reg = iota
	RDX
	RCX
	RBX
	RSI
	RDI
	RBP
	RSP
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	RIP
	RegVector
	RegNone
)

var regNames = [...]string{
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip", "vector", "none",
}

// String returns the 64-bit register's name in lower case.
func (r Reg) String() string {
	if int(r) < len(regNames) {
		return regNames[r]
	}
	return "unknown"
}

// General reports whether r is one of the sixteen general registers.
func (r Reg) General() bool { return r <= R15 }

// Encoding returns the processor's number of a general register: the four bits by which
// instructions name it.
func (r Reg) Encoding() uint8 {
	return [16]uint8{0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}[r]
}

// encodedReg converts the processor's register number to DWARF's.
func encodedReg(n uint8) Reg {
	return [16]Reg{RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15}[n&15]
}

// regSet is a set of general registers, bit n being register n.
type regSet uint32

func (s *regSet) addRegister(r Reg) {
	if r.General() {
		*s |= 1 << r
	}
}

func (s regSet) list() []Reg {
	if s == 0 {
		return nil
	}
	regs := make([]Reg, 0, 8)
	for r := RAX; r <= R15; r++ {
		if s&(1<<r) != 0 {
			regs = append(regs, r)
		}
	}
	return regs
}

// Written returns the full-width general registers that the instruction writes
// or may write, in the order of their numbers. The effects of a call's callee
// and of the kernel are not included.
func (i *Inst) Written() []Reg {
	var set regSet
	for n := range i.Operands {
		if o := &i.Operands[n]; !o.IsMemory && !o.IsImm && o.Access.Writes() {
			set.addRegister(o.Reg)
		}
	}
	return set.list()
}

// Read returns the full-width general registers whose value matters, in the
// order of their numbers: sources, parts of addresses, and the destinations of
// 8- and 16-bit writes, which leave the rest unchanged (a 32-bit write clears
// the upper half: Intel SDM volume 1, 3.4.1.1).
func (i *Inst) Read() []Reg {
	var set regSet
	for n := range i.Operands {
		o := &i.Operands[n]
		switch {
		case o.IsMemory:
			if i.Op != "nop" {
				set.addRegister(o.Memory.Base)
				set.addRegister(o.Memory.Index)
			}
		case o.IsImm:
		case o.Access.Reads(), o.Access == evidence.Write && o.Size < 4:
			set.addRegister(o.Reg)
		}
	}
	return set.list()
}

// Repeats reports whether the instruction has a repeat prefix and so many repetitions as a register
// says: an interrupt, a single step or a watchpoint may stop it between them. A gather has none.
func (i *Inst) Repeats() bool {
	return slices.ContainsFunc(i.Operands, func(o Operand) bool { return o.IsMemory && o.Repeated && o.Memory.Index != RegVector })
}

// Writes reports whether the instruction writes or may write any part of r.
func (i *Inst) Writes(r Reg) bool {
	for n := range i.Operands {
		if o := &i.Operands[n]; o.Reg == r && !o.IsMemory && !o.IsImm && o.Access.Writes() {
			return true
		}
	}
	return false
}
