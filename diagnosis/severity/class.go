package severity

import (
	"diagnose/evidence"
	"diagnose/image/x86"

	"golang.org/x/sys/unix"
)

// nearNull is the lowest address that Linux maps by default (vm.mmap_min_addr). casr has the same bound.
const nearNull = 64 << 10

// atFailure is the class by the signal and the failing instruction; false if the process did not end
// by a signal that an instruction or the program itself raised.
func atFailure(f *evidence.Failure, code []byte) (evidence.SeverityReason, bool) {
	if f.Signal == nil {
		return evidence.SeverityReason{}, false
	}
	switch f.Kind {
	case evidence.KilledBySignal, evidence.Deadlock, evidence.NoFailure, evidence.DeclaredFailure, evidence.ExitStatus:
		return evidence.SeverityReason{}, false
	case evidence.StackOverflow:
		return plain(f, evidence.ReasonAccess, evidence.ClassStackOverflow), true
	}
	switch unix.Signal(f.Signal.Number) {
	case unix.SIGABRT:
		return byCheck(f), true
	case unix.SIGTRAP:
		return plain(f, evidence.ReasonSignal, evidence.ClassTrapSignal), true
	case unix.SIGILL, unix.SIGSYS:
		return badInstruction(f), true
	case unix.SIGFPE:
		return plain(f, evidence.ReasonSignal, evidence.ClassFPE), true
	case unix.SIGSEGV, unix.SIGBUS:
		return newFaulting(f, code).reason(), true
	}
	return evidence.SeverityReason{}, false
}

// plain is a reason that needs no more than the failure's kind.
func plain(f *evidence.Failure, kind evidence.SeverityReasonKind, class evidence.SeverityClass) evidence.SeverityReason {
	return evidence.SeverityReason{Kind: kind, Class: class, Estimate: class.Estimate(), Failure: f.Kind, Proof: f.Proof}
}

// byCheck is the class of a program that ended itself.
func byCheck(f *evidence.Failure) evidence.SeverityReason {
	switch f.Kind {
	case evidence.HeapCorruption, evidence.HeapOverflow, evidence.HeapUnderflow, evidence.UseAfterFree, evidence.DoubleFree,
		evidence.InvalidFree, evidence.MismatchedFree:
		return plain(f, evidence.ReasonCheck, evidence.ClassHeapError)
	case evidence.FortifyFailure:
		return plain(f, evidence.ReasonCheck, evidence.ClassSafeFunctionCheck)
	case evidence.StackSmashing:
		return plain(f, evidence.ReasonCheck, evidence.ClassStackGuard)
	}
	return plain(f, evidence.ReasonSignal, evidence.ClassAbortSignal)
}

// badInstruction tells instructions that do not exist, which the thread may have come to by a bad
// address, from those that a compiler emits to stop.
func badInstruction(f *evidence.Failure) evidence.SeverityReason {
	if f.Kind == evidence.TrapInsn {
		return plain(f, evidence.ReasonSignal, evidence.ClassTrapSignal)
	}
	return plain(f, evidence.ReasonSignal, evidence.ClassBadInstruction)
}

// faulting is an instruction whose access the processor refused.
type faulting struct {
	failure *evidence.Failure
	code    []byte
	// inst is nil if the bytes are not known, or are no instruction. operand is the memory operand
	// that faulted, by its index in inst; -1: it is not known which one did.
	inst    *x86.Inst
	operand int
}

func newFaulting(f *evidence.Failure, code []byte) *faulting {
	x := &faulting{failure: f, code: code, operand: -1}
	if f.Instruction == nil {
		return x
	}
	inst, err := x86.Decode(code, uint64(f.Instruction.PC))
	if err != nil {
		return x
	}
	x.inst = &inst
	if f.Fault == nil || len(inst.Operands) != len(f.Instruction.Operands) {
		return x
	}
	x.operand = x.refused()
	return x
}

// refused finds the memory operand at the address of the fault, or the only one.
func (x *faulting) refused() int {
	only, count := -1, 0
	for i := range x.inst.Operands {
		o := &x.inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		only, count = i, count+1
		at := x.failure.Instruction.Operands[i].Address
		if at != nil && x.failure.Fault.Addr >= *at && uint64(x.failure.Fault.Addr-*at) < uint64(max(o.Size, 1)) {
			return i
		}
	}
	if count == 1 {
		return only
	}
	return -1
}

// reason is the class of the fault.
func (x *faulting) reason() evidence.SeverityReason {
	f := x.failure
	if f.Kind == evidence.IllegalInsn { // the processor refused a privileged instruction with SIGSEGV
		return plain(f, evidence.ReasonSignal, evidence.ClassBadInstruction)
	}
	if f.Fault == nil || f.Kind == evidence.UnknownFailure { // such as an address that is not aligned
		return plain(f, evidence.ReasonAccess, evidence.ClassAccessViolation)
	}
	r := evidence.SeverityReason{Kind: evidence.ReasonAccess, Access: f.Fault.Access, Addr: &f.Fault.Addr, NearNull: x.nearNull(), Proof: f.Fault.Proof}
	if f.Instruction != nil {
		r.Instruction, r.PC = f.Instruction.Text, &f.Instruction.PC
	}
	switch {
	case f.Fault.Access == evidence.Execute && (x.inst == nil || f.Instruction.PC == f.Fault.Addr):
		r.Kind, r.Class = evidence.ReasonFetch, nearOr(r.NearNull, evidence.ClassSegFaultOnPCNearNull, evidence.ClassSegFaultOnPC)
	case x.flow(x86.FlowReturn):
		r.Kind, r.Class = evidence.ReasonControl, evidence.ClassReturnAV
	case x.flow(x86.FlowCall) && !x.pushes():
		r.Kind, r.Class = evidence.ReasonControl, nearOr(r.NearNull, evidence.ClassCallAVNearNull, evidence.ClassCallAV)
	case x.flow(x86.FlowJump):
		r.Kind, r.Class = evidence.ReasonControl, nearOr(r.NearNull, evidence.ClassBranchAVNearNull, evidence.ClassBranchAV)
	case f.Fault.Access.Writes():
		r.Class = nearOr(r.NearNull, evidence.ClassDestAVNearNull, evidence.ClassDestAV)
	case f.Fault.Access == evidence.Read:
		return x.read(r)
	default:
		r.Class = evidence.ClassAccessViolation
	}
	r.Estimate = r.Class.Estimate()
	return r
}

// read is the class of a load that failed. If its address is not near null, it may be an attacker's,
// and so may be the value: what the next instructions do with that counts.
func (x *faulting) read(r evidence.SeverityReason) evidence.SeverityReason {
	r.Class = nearOr(r.NearNull, evidence.ClassSourceAVNearNull, evidence.ClassSourceAV)
	if unix.Signal(x.failure.Signal.Number) == unix.SIGSEGV && !r.NearNull && x.operand >= 0 {
		if use := nextUse(x.inst, x.operand, x.code); use != nil {
			pc := evidence.Addr(use.inst.PC)
			r.Kind, r.Class, r.Access, r.Instruction, r.PC, r.Proof = evidence.ReasonNextUse, use.class, use.access, use.inst.Text(), &pc, evidence.Inferred
		}
	}
	r.Estimate = r.Class.Estimate()
	return r
}

func nearOr(near bool, nearNull, other evidence.SeverityClass) evidence.SeverityClass {
	if near {
		return nearNull
	}
	return other
}

func (x *faulting) flow(flow x86.Flow) bool { return x.inst != nil && x.inst.Flow == flow }

// pushes reports whether a call failed as it stored its return address.
func (x *faulting) pushes() bool {
	return x.operand >= 0 && x.inst.Operands[x.operand].Implicit
}

// nearNull reports whether the address is in the first 64 KiB, or at a constant distance from a null
// pointer: neither is an attacker's choice.
func (x *faulting) nearNull() bool {
	f := x.failure
	if f.Fault.Addr < nearNull {
		return true
	}
	if f.Kind != evidence.NullPointer || x.operand < 0 {
		return false
	}
	m := &x.inst.Operands[x.operand].Memory
	registers := f.Instruction.Operands[x.operand].Registers
	return m.Index == x86.RegNone && m.Base.General() && len(registers) == 1 && registers[0].Value == 0
}
