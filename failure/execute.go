package failure

import (
	"diagnose/evidence"
	"diagnose/image"
)

// executed judges a fault of the instruction fetch.
func (s *scene) executed(f *evidence.Failure) {
	addr := f.Fault.Addr
	f.Fault.Access, f.Instruction = evidence.Execute, nil
	f.Message = s.arrival(s.pc())
	m := s.MappingAt(addr)
	switch {
	case addr == 0:
		f.Kind = evidence.NullPointer
	case addr < nearNull:
		f.Kind = evidence.NearNullPointer
	case !addr.Canonical():
		f.Kind = evidence.NonCanonical
	case m == nil || f.Signal.Code == segvMapErr:
		f.Kind = s.unmappedKind(f, addr)
	case !m.Readable() && !m.Writable():
		f.Kind = evidence.ProtectedPage
	default:
		f.Kind = evidence.ExecuteOfData
	}
}

// Ways to arrive at an instruction.
const (
	arrivedByCall   = "call"
	arrivedByReturn = "return"
	arrivedByJump   = "jump"
)

// arrival says how the thread came to execute at target: a return leaves the
// target just below the stack pointer, a call the return address at it.
func (s *scene) arrival(target evidence.Addr) string {
	sp := s.registers().SP()
	if s.pc() != target {
		return arrivalOfInstruction(s)
	}
	if v, err := image.Uint64(s, sp-8); err == nil && evidence.Addr(v) == target {
		return arrivedByReturn
	}
	if v, err := image.Uint64(s, sp); err == nil && s.followsCall(evidence.Addr(v)) {
		return arrivedByCall
	}
	return arrivedByJump
}

func arrivalOfInstruction(s *scene) string {
	if s.inst == nil {
		return arrivedByJump
	}
	switch s.inst.Op {
	case "ret":
		return arrivedByReturn
	case "call":
		return arrivedByCall
	}
	return arrivedByJump
}

// followsCall reports whether executable code before pc ends in a call: E8,
// or FF /2 of two to seven bytes with an optional REX prefix.
func (s *scene) followsCall(pc evidence.Addr) bool {
	m := s.MappingAt(pc)
	if m == nil || !m.Executable() {
		return false
	}
	var b [7]byte
	if _, err := s.ReadMemory(pc-7, b[:]); err != nil {
		return false
	}
	if b[2] == 0xe8 {
		return true
	}
	for at := 0; at <= 5; at++ {
		if b[at] == 0xff && b[at+1]>>3&7 == 2 {
			return true
		}
	}
	return false
}
