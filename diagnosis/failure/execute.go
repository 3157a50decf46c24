package failure

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// executed judges a fault of the instruction fetch.
func (j *judge) executed(f *evidence.Failure) {
	addr := f.Fault.Addr
	f.Fault.Access, f.Instruction = evidence.Execute, nil
	f.Arrival = j.cpu.arrival(j.cpu.pc())
	m := j.process.MappingAt(addr)
	switch {
	case addr == 0:
		f.Kind = evidence.NullPointer
	case addr < nearNull:
		f.Kind = evidence.NearNullPointer
	case !addr.Canonical():
		f.Kind = evidence.NonCanonical
	case m == nil || f.Signal.Code == segvMapErr:
		f.Kind = j.unmappedKind(f, addr)
	case !m.Readable() && !m.Writable():
		f.Kind = evidence.ProtectedPage
		if strings.HasPrefix(m.Perms, "?") {
			f.Proof = evidence.Inferred // it may be data
		}
	default:
		f.Kind = evidence.ExecuteOfData
	}
}

// arrival says how the thread came to execute at target: an indirect call leaves the return address
// at the stack pointer, a return leaves the target just below it. The call is checked first,
// because a stale zero may be below the stack pointer.
func (c *processor) arrival(target evidence.Addr) evidence.Arrival {
	sp := c.regs.SP()
	if c.pc() != target {
		return c.arrivalOfInstruction()
	}
	if v, err := image.Uint64(c, sp); err == nil && c.followsCall(evidence.Addr(v)) {
		return evidence.ArrivedByCall
	}
	if v, err := image.Uint64(c, sp-8); err == nil && evidence.Addr(v) == target {
		return evidence.ArrivedByReturn
	}
	return evidence.ArrivedByJump
}

func (c *processor) arrivalOfInstruction() evidence.Arrival {
	if c.inst == nil {
		return evidence.ArrivedByJump
	}
	switch c.inst.Op {
	case "ret":
		return evidence.ArrivedByReturn
	case "call":
		return evidence.ArrivedByCall
	}
	return evidence.ArrivedByJump
}

// followsCall reports whether executable code before pc ends in an indirect call: FF /2, two to
// seven bytes with their addressing and without prefixes (Intel SDM volume 2, CALL). A direct call
// leads to a function, not to a wrong address.
func (c *processor) followsCall(pc evidence.Addr) bool {
	m := c.MappingAt(pc)
	if m == nil || !m.Executable() {
		return false
	}
	var b [7]byte
	if _, err := c.ReadMemory(pc-7, b[:]); err != nil {
		return false
	}
	for at := 0; at <= 5; at++ {
		if b[at] != 0xff || b[at+1]>>3&7 != 2 {
			continue
		}
		inst, err := x86.Decode(b[at:], uint64(pc)-7+uint64(at))
		if err == nil && inst.Len == len(b)-at && inst.Flow == x86.FlowCall {
			return true
		}
	}
	return false
}
