// Package x86 decodes x86-64 instructions and reports what they read and write.
//
// It uses golang.org/x/arch/x86/x86asm and corrects its known faults: endbr64,
// RIP-relative VEX and EVEX operands, displacements that are not sign extended,
// the length of vzeroupper, and the instructions it does not know. This package
// decodes lengths and memory operands itself (Intel SDM volume 2, chapter 2).
// It also has its own table of which operands are read and written, which the
// tests validate on the processor.
package x86

import "diagnose/evidence"

// Segment overrides that matter: FS and GS address thread-local storage.
type Segment uint8

// The segments; in 64-bit mode the others have base 0 and are not
// distinguished.
const (
	SegNone Segment = iota
	SegFS
	SegGS
)

// Memory is a memory operand: Base + Index*Scale + Disp in Segment. A
// RIP-relative operand has Base RIP and Disp relative to the next
// instruction; Target is then its absolute address.
//
// The address is the accessed one, computed from the registers before the
// instruction: push's slot is [rsp-8].
type Memory struct {
	Segment     Segment
	Base, Index Reg // RegNone if absent; Index is RegVector for a gather
	Scale       uint8
	Absolute    bool // neither base nor index
	// Addr32 says that the address is truncated to 32 bits.
	Addr32 bool
	// Inexact says that another operand holds the distance of the access from
	// this address: bt with a bit offset in a register, gather and scatter,
	// xlat, an unknown EVEX displacement.
	Inexact     bool
	vectorIndex uint8 // number and size of the index of a gather, for Text
	Disp        int64
	Target      uint64 // for Base == RIP and for absolute operands
}

// Address returns the effective address without the base of Segment. It is
// false when a register has no value or the address is not exact.
func (m *Memory) Address(value func(Reg) (uint64, bool)) (uint64, bool) {
	if m.Inexact || m.Index == RegVector {
		return 0, false
	}
	if m.Absolute || m.Base == RIP {
		return m.Target, true
	}
	addr := uint64(m.Disp)
	if m.Base != RegNone {
		v, ok := value(m.Base)
		if !ok {
			return 0, false
		}
		addr += v
	}
	if m.Index != RegNone {
		v, ok := value(m.Index)
		if !ok {
			return 0, false
		}
		addr += v * uint64(m.Scale)
	}
	if m.Addr32 {
		addr = uint64(uint32(addr))
	}
	return addr, true
}

// Operand is one operand, explicit or implied.
type Operand struct {
	// Exactly one of the three: IsMemory, a register, or an immediate.
	// Reg is RegNone unless it is a general or vector register.
	IsMemory bool
	IsImm    bool
	Reg      Reg
	// Implicit operands are not written in the text: push's stack slot.
	Implicit bool
	// Repeated: accessed a number of times that a register holds (rep), or
	// at the addresses that a vector holds (gather, scatter).
	Repeated bool
	// Conditional: may not happen, or may leave the old value: a masked store,
	// cmpxchg's store (which a watchpoint sees in any case), the destination of
	// cmov. A cmov's load always happens.
	Conditional bool
	// Size in bytes of the access; 0 when not fixed (xsave, bt with a
	// register).
	Size int
	// Access is empty for an immediate, for an address that is only computed
	// (lea, nop) and for a source that does not matter (xor eax, eax).
	Access evidence.AccessKind
	// RegName is the name as written, "eax".
	RegName string
	// Imm is sign-extended; if the destination is 32 bits wide the upper half
	// is ignored. For a direct branch it is the target.
	Imm    int64
	Memory Memory
}

// Flow is what an instruction does to the instruction pointer.
type Flow uint8

// The flows.
const (
	FlowNext    Flow = iota // continues
	FlowJump                // unconditional
	FlowBranch              // conditional
	FlowCall                // continues when the callee returns
	FlowReturn              // to an address from the stack
	FlowTrap                // ud2, int3, hlt: does not continue
	FlowSyscall             // into the kernel, then continues
)

// Inst is one decoded instruction.
type Inst struct {
	PC  uint64
	Len int
	// Bytes are Len bytes of the slice that was decoded, not a copy.
	Bytes []byte
	// Op is the mnemonic in lower case without prefixes: "mov", "vmovdqu".
	Op string
	// Operands are the explicit ones in Intel's order, then the implicit.
	Operands []Operand
	Flow     Flow
	// Target is the destination of a direct jump, branch or call.
	Target    uint64
	HasTarget bool

	style style
}
