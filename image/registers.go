package image

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Register is a register by its DWARF number.
type Register = x86.Reg

// The general registers and the return address column.
const (
	RAX = x86.RAX
	RDX = x86.RDX
	RCX = x86.RCX
	RBX = x86.RBX
	RSI = x86.RSI
	RDI = x86.RDI
	RBP = x86.RBP
	RSP = x86.RSP
	R8  = x86.R8
	R9  = x86.R9
	R10 = x86.R10
	R11 = x86.R11
	R12 = x86.R12
	R13 = x86.R13
	R14 = x86.R14
	R15 = x86.R15
	RIP = x86.RIP

	generalRegisters = RIP + 1
)

// Registers are the registers of a frame. In callers some are not known,
// because callees may change them.
type Registers struct {
	value [generalRegisters]uint64
	known uint32 // bit per register
	// FSBase, GSBase and Flags are the thread's; OrigRAX is the number of the
	// system call it was in, or -1.
	FSBase, GSBase evidence.Addr
	Flags          uint64
	OrigRAX        int64
	// Vector returns the 16 low bytes of xmmN; nil for frames whose vector
	// registers are not known.
	Vector *VectorState
}

// VectorState holds the low 16 bytes of each xmm register.
type VectorState [16][16]byte

// Get returns a register's value, and whether it is known.
func (r *Registers) Get(n Register) (uint64, bool) {
	if n >= generalRegisters || r.known&(1<<n) == 0 {
		return 0, false
	}
	return r.value[n], true
}

// Set makes a register known.
func (r *Registers) Set(n Register, v uint64) {
	if n < generalRegisters {
		r.value[n] = v
		r.known |= 1 << n
	}
}

// Forget makes a register unknown.
func (r *Registers) Forget(n Register) {
	if n < generalRegisters {
		r.value[n] = 0
		r.known &^= 1 << n
	}
}

// PC returns the instruction pointer; 0 when it is not known.
func (r *Registers) PC() evidence.Addr { return evidence.Addr(r.value[RIP]) }

// SP returns the stack pointer; 0 when it is not known.
func (r *Registers) SP() evidence.Addr { return evidence.Addr(r.value[RSP]) }

// General returns the known general registers in their usual order, rip last.
func (r *Registers) General() []evidence.Register {
	order := []Register{RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP}
	var list []evidence.Register
	for _, n := range order {
		if v, ok := r.Get(n); ok {
			list = append(list, evidence.Register{Name: n.String(), Value: evidence.Addr(v)})
		}
	}
	return list
}
