package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"
)

// Signal numbers and codes of x86-64 Linux (asm-generic/signal.h,
// asm-generic/siginfo.h).
const (
	sigBUS  = 7
	sigFPE  = 8
	sigSEGV = 11
)

// culprit is what is to blame in a failing instruction.
type culprit struct {
	role Role
	// reg holds the bad value, or else memory does, at operand.
	reg     x86.Reg
	operand *x86.Operand // the memory operand concerned; nil if none
	inCell  bool         // the bad value is the operand's content
}

// findCulprit looks at the instruction at s.now.
func (s *backwardSlice) findCulprit(sig *evidence.Signal) (culprit, bool) {
	in := &s.a.flow.insts[s.now]
	if sig == nil || sig.Code <= 0 {
		return culprit{}, false
	}
	switch sig.Number {
	case sigFPE:
		return divisor(in)
	case sigSEGV, sigBUS:
	default:
		return culprit{}, false
	}
	op := s.faultingOperand(in, sig)
	if op == nil || s.targetIsBad(in, op) {
		return target(in)
	}
	if at := s.a.addrs[s.now]; at.kind == stack && !at.varies && !s.overwritten(op) || op.Memory.Base == x86.RSP && op.Implicit {
		// The stack is full, or its pointer is bad: no operand is to blame.
		return culprit{}, false
	}
	return s.badPart(op)
}

// overwritten reports that a pointer that the code has from the stack's addresses led
// somewhere else: another's store changed the variable that it was kept in.
func (s *backwardSlice) overwritten(op *x86.Operand) bool {
	if op.Memory.Base == x86.RSP || op.Memory.Base == x86.RBP {
		return false
	}
	const far = 1 << 32 // no stack is as large
	addr, ok := op.Memory.Address(s.known)
	sp, known := s.known(x86.RSP)
	return ok && known && max(addr, sp)-min(addr, sp) > far
}

func divisor(in *x86.Inst) (culprit, bool) {
	op, ok := explicit(in, 0)
	if in.Op != "div" && in.Op != "idiv" || !ok {
		return culprit{}, false
	}
	return valueOperand(RoleDivisor, op), true
}

func valueOperand(role Role, op *x86.Operand) culprit {
	if op.IsMemory {
		return culprit{role: role, operand: op, inCell: true, reg: x86.RegNone}
	}
	return culprit{role: role, reg: op.Reg}
}

// target blames where an indirect call, jump or return goes.
func target(in *x86.Inst) (culprit, bool) {
	switch in.Flow {
	case x86.FlowCall, x86.FlowJump:
		if op, ok := explicit(in, 0); ok && !in.HasTarget && (op.IsMemory || op.Reg.General()) {
			return valueOperand(RoleTarget, op), true
		}
	case x86.FlowReturn:
		for n := range in.Operands {
			if op := &in.Operands[n]; op.IsMemory && op.Memory.Base == x86.RSP {
				return culprit{role: RoleTarget, operand: op, inCell: true, reg: x86.RegNone}, true
			}
		}
	}
	return culprit{}, false
}

// targetIsBad tells a jump whose destination is not canonical, for which the
// processor faults at the jump, from one whose pointer could not be read.
func (s *backwardSlice) targetIsBad(in *x86.Inst, op *x86.Operand) bool {
	switch in.Flow {
	case x86.FlowCall, x86.FlowJump, x86.FlowReturn:
	default:
		return false
	}
	if in.HasTarget {
		return false
	}
	addr, ok := op.Memory.Address(s.known)
	if !ok {
		return false
	}
	if op.Implicit && in.Flow != x86.FlowReturn {
		// The push of the return address failed, or the target is bad.
		return !evidence.Addr(s.targetValue(in)).Canonical()
	}
	v, err := image.Uint64(s.memory, evidence.Addr(addr))
	return err == nil && !evidence.Addr(v).Canonical()
}

func (s *backwardSlice) targetValue(in *x86.Inst) uint64 {
	op, ok := explicit(in, 0)
	if !ok || op.IsMemory {
		return 0
	}
	v, _ := s.known(op.Reg)
	return v
}

func (s *backwardSlice) known(r x86.Reg) (uint64, bool) { return s.registers.Get(image.Register(r)) }

// faultingOperand is the memory operand that the fault's address lies in;
// without an address, for a general protection fault, one that is not
// canonical; else the first.
func (s *backwardSlice) faultingOperand(in *x86.Inst, sig *evidence.Signal) *x86.Operand {
	var first *x86.Operand
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory || op.Access == "" {
			continue
		}
		if first == nil {
			first = op
		}
		addr, ok := op.Memory.Address(s.known)
		if !ok {
			continue
		}
		if sig.HasAddr && sig.Code != siginfo.Kernel {
			if d := uint64(sig.Addr) - addr; d < uint64(max(op.Size, 64)) {
				return op
			}
		} else if !evidence.Addr(addr).Canonical() {
			return op
		}
	}
	return first
}

// badPart chooses between an address's base and index: the base if it is no
// address by itself, else the index.
func (s *backwardSlice) badPart(op *x86.Operand) (culprit, bool) {
	m := &op.Memory
	base, index := m.Base.General(), m.Index.General()
	switch {
	case base && index:
		if v, ok := s.known(m.Base); ok && s.mapped(v) {
			return culprit{role: RoleIndex, reg: m.Index, operand: op}, true
		}
		return s.baseOrScaled(op), true
	case base:
		return culprit{role: RolePointer, reg: m.Base, operand: op}, true
	case index:
		return culprit{role: RoleIndex, reg: m.Index, operand: op}, true
	}
	return culprit{role: "", reg: x86.RegNone, operand: op}, true
}

// baseOrScaled takes into account that [a+b*1] may have them in any order.
func (s *backwardSlice) baseOrScaled(op *x86.Operand) culprit {
	m := &op.Memory
	if v, ok := s.known(m.Index); ok && m.Scale == 1 && s.mapped(v) {
		return culprit{role: RoleIndex, reg: m.Base, operand: op}
	}
	return culprit{role: RolePointer, reg: m.Base, operand: op}
}

func (s *backwardSlice) mapped(v uint64) bool { return s.process.MappingAt(evidence.Addr(v)) != nil }
