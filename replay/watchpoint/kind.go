package watchpoint

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// instruction finds the instruction that accessed the watched word of a sighting; nil if it cannot
// be determined. changed are the bits of the word that changed.
func (r *codeReader) instruction(s *sighting, w *tracee.Watch, changed uint64) (inst *x86.Inst, kind evidence.AccessCode) {
	regs := &s.regs
	again := false
	defer func() {
		if again {
			r.repeats[s.index] = regs.Rip
		} else {
			delete(r.repeats, s.index)
		}
	}()
	if inst := r.live.MovedFrom(regs.Rip); inst != nil {
		kind, _ = accesses(inst, regs, w)
		return inst, kind
	}
	x := r.stretch(regs.Rip)
	weak := -1
	for i := range x.before {
		kind, sure := accesses(&x.before[i], regs, w)
		switch {
		case kind == evidence.CodeUnknown:
		case sure && !r.repeating(x, s, w, changed):
			return &x.before[i], kind
		case !sure && weak < 0:
			weak = i
		}
	}
	if x.repeat != nil {
		if kind, again = accesses(x.repeat, regs, w); again {
			return x.repeat, kind
		}
	}
	if inst, kind := r.arrival(s, w); kind != evidence.CodeUnknown {
		return inst, kind
	}
	if weak >= 0 {
		kind, _ := accesses(&x.before[weak], regs, w)
		return &x.before[weak], kind
	}
	return nil, evidence.CodeUnknown
}

// repeating reports whether a thread that is at an instruction which repeats itself has just
// executed a repetition of it, not the instruction before: the bytes that changed are those of one
// repetition.
func (r *codeReader) repeating(x *stretch, s *sighting, w *tracee.Watch, changed uint64) bool {
	if x.repeat == nil {
		return false
	}
	if _, sure := accesses(x.repeat, &s.regs, w); !sure {
		return false
	}
	if r.repeats[s.index] == s.regs.Rip {
		return true
	}
	for i := range x.repeat.Operands {
		o := &x.repeat.Operands[i]
		addr, known := addressOf(x.repeat, o, &s.regs)
		if !o.IsMemory || !known || CodeOf(o.Access)&evidence.CodeWrite == 0 {
			continue
		}
		for b := range uint64(w.Size) {
			if at := uint64(w.Addr) + b; at >= addr && at < addr+uint64(o.Size) {
				changed &^= 0xff << (8 * b)
			}
		}
	}
	return changed == 0
}

// arrival is for a thread that reached its pc by a call, a return or a jump through memory. Which
// instruction returned is not known.
func (r *codeReader) arrival(s *sighting, w *tracee.Watch) (inst *x86.Inst, kind evidence.AccessCode) {
	const word = 8
	regs := &s.regs
	if overlaps(regs.Rsp-word, word, w) && r.behindCall(regs.Rip) != nil {
		return nil, evidence.CodeRead
	}
	back, err := image.Uint64(s.stack, evidence.Addr(regs.Rsp))
	if err != nil {
		return nil, evidence.CodeUnknown
	}
	call := r.behindCall(back)
	if call == nil {
		return nil, evidence.CodeUnknown
	}
	if kind, _ := accesses(call, regs, w); kind != evidence.CodeUnknown {
		return call, kind
	}
	if !call.HasTarget {
		return nil, evidence.CodeUnknown
	}
	// A call through the procedure linkage table.
	jump := r.live.Instruction(call.Target)
	if jump != nil && jump.Op == "endbr64" {
		jump = r.live.Instruction(call.Target + uint64(jump.Len))
	}
	if jump != nil && jump.Flow == x86.FlowJump {
		if kind, _ := accesses(jump, regs, w); kind != evidence.CodeUnknown {
			return jump, kind
		}
	}
	return nil, evidence.CodeUnknown
}

// behindCall returns the call that ends at a pc; nil if there is none.
func (r *codeReader) behindCall(pc uint64) *x86.Inst {
	x := r.stretch(pc)
	for i := range x.before {
		if x.before[i].Flow == x86.FlowCall {
			return &x.before[i]
		}
	}
	return nil
}

// stretch decodes the code around a pc.
func (r *codeReader) stretch(pc uint64) *stretch {
	if x := r.pcs[pc]; x != nil {
		return x
	}
	x := &stretch{}
	if inst := r.live.Instruction(pc); inst != nil && inst.Repeats() {
		x.repeat = inst
	}
	x.before = r.endingAt(pc)
	r.pcs[pc] = x
	return x
}

// endingAt returns the instructions that end at a pc: first the one that decoding from before it
// arrives at, then all others that the bytes allow, longest first, because there may be data among
// the code.
func (r *codeReader) endingAt(pc uint64) []x86.Inst {
	const reach = patch.Reach + patch.Lead
	text := make([]byte, reach)
	base := pc - reach
	if r.live.ReadCode(text[reach-tracee.LongestInstruction:], pc-tracee.LongestInstruction) < tracee.LongestInstruction {
		return nil
	}
	if _, err := r.live.Memory.ReadAt(text, int64(base)); err != nil {
		// The object's first code: the memory before it is not mapped.
		page := pc &^ (tracee.PageSize - 1)
		if _, err := r.live.Memory.ReadAt(text[:pc-page], int64(page)); err != nil || pc == page {
			return nil
		}
		text, base = text[:pc-page], page
	}
	var list []x86.Inst
	if found := patch.DecodeBefore(text, base, len(text)); len(found) > 0 {
		list = append(list, found[len(found)-1])
	}
	for n := min(tracee.LongestInstruction, len(text)); n > 0; n-- {
		inst, err := x86.Decode(text[len(text)-n:], pc-uint64(n))
		if err == nil && inst.Len == n && (len(list) == 0 || list[0].PC != inst.PC) {
			list = append(list, inst)
		}
	}
	return list
}

// accesses returns how an instruction that was just executed accessed the watched word. sure is
// false if its address cannot be computed from the registers after it.
func accesses(inst *x86.Inst, regs *ptrace.Registers, w *tracee.Watch) (kind evidence.AccessCode, sure bool) {
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		addr, known := addressOf(inst, o, regs)
		if known && o.Size != 0 {
			if overlaps(addr, uint64(o.Size), w) {
				kind, sure = kind|CodeOf(o.Access), true
			}
			continue
		}
		if !sure {
			kind |= CodeOf(o.Access)
		}
	}
	return kind, sure
}

// CodeOf returns the code of an access: the codes of read and write are bits, and that of both is
// their union.
func CodeOf(k evidence.AccessKind) evidence.AccessCode {
	switch k {
	case evidence.Read:
		return evidence.CodeRead
	case evidence.Write:
		return evidence.CodeWrite
	case evidence.ReadWrite:
		return evidence.CodeReadWrite
	}
	return evidence.CodeUnknown
}

func overlaps(addr, size uint64, w *tracee.Watch) bool {
	return addr < uint64(w.Addr)+uint64(w.Size) && addr+size > uint64(w.Addr)
}

// addressOf computes the address of a memory operand from the registers after the instruction.
func addressOf(inst *x86.Inst, o *x86.Operand, regs *ptrace.Registers) (uint64, bool) {
	if o.Repeated && o.Memory.Index == x86.RegVector {
		return 0, false
	}
	after := tracee.GeneralRegisters(regs)
	addr, known := o.Memory.Address(func(reg x86.Reg) (uint64, bool) {
		if !reg.General() {
			return 0, false
		}
		if !inst.Writes(reg) {
			return after[reg], true
		}
		return valueBefore(inst, o, reg, regs)
	})
	return addr + tracee.SegmentBase(o, regs), known
}

const directionFlag = 0x400

// valueBefore returns the old value of a register that an instruction uses as an address and
// changes: stack and string instructions move it by a fixed amount.
func valueBefore(inst *x86.Inst, o *x86.Operand, reg x86.Reg, regs *ptrace.Registers) (uint64, bool) {
	switch {
	case reg == x86.RSP && (strings.HasPrefix(inst.Op, "push") || inst.Op == "call"):
		return regs.Rsp + pushed(inst), true
	case reg == x86.RSP && strings.HasPrefix(inst.Op, "pop"):
		return regs.Rsp - pushed(inst), true
	case reg == x86.RBP && inst.Op == "leave":
		return regs.Rsp - 8, true
	case (reg == x86.RDI || reg == x86.RSI) && stringInstruction(inst):
		by := uint64(o.Size)
		if regs.Eflags&directionFlag != 0 {
			by = -by
		}
		return tracee.GeneralRegisters(regs)[reg] - by, true
	}
	return 0, false
}

// pushed returns the size of the stack slot that an instruction writes or reads.
func pushed(inst *x86.Inst) uint64 {
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && o.Implicit && o.Size != 0 {
			return uint64(o.Size)
		}
	}
	return 8
}

func stringInstruction(inst *x86.Inst) bool {
	opcode := byte(0)
	for _, c := range inst.Bytes {
		if c == 0xf2 || c == 0xf3 || c == 0x66 || c == 0x67 || c&0xf0 == 0x40 {
			continue
		}
		opcode = c
		break
	}
	return opcode >= 0xa4 && opcode <= 0xa7 || opcode >= 0xaa && opcode <= 0xaf
}
