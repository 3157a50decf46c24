package severity

import (
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// use is a use of the value that a failing instruction was to load.
type use struct {
	inst   x86.Inst
	class  evidence.SeverityClass
	access evidence.AccessKind
}

// nextUse follows the value that a load of an operand would have brought, through the registers, to
// the end of the basic block. It returns the first instruction that would store through the value, or
// continue at it; nil if there is none in the code that is known. Values in memory are not followed.
func nextUse(first *x86.Inst, operand int, code []byte) *use {
	loaded := values{}
	loaded.pass(first, func(n int) bool { return n == operand })
	if first.Flow != x86.FlowNext {
		return nil
	}
	for at := first.Len; at < len(code) && len(loaded) > 0; {
		inst, err := x86.Decode(code[at:], first.PC+uint64(at))
		if err != nil {
			return nil
		}
		if u := loaded.usedBy(&inst); u != nil {
			return u
		}
		if inst.Flow != x86.FlowNext {
			return nil
		}
		loaded.pass(&inst, func(n int) bool { return loaded.inAddress(&inst.Operands[n].Memory) })
		at += inst.Len
	}
	return nil
}

// place is a byte of a register.
type place struct {
	space  transfer.Space
	number uint8
	offset int
}

// values are the bytes that depend on the value.
type values map[place]bool

// pass does what an instruction does to the values. from tells which memory operands it loads them from.
func (v values) pass(inst *x86.Inst, from func(operand int) bool) {
	type change struct {
		at    place
		holds bool
	}
	var changes []change
	for _, t := range transfer.Of(inst) {
		if t.To.Space != transfer.General && t.To.Space != transfer.Vector && t.To.Space != transfer.Mask {
			continue
		}
		for i := range t.To.Size {
			at := place{t.To.Space, t.To.Num, t.To.Off + i}
			changes = append(changes, change{at, v.made(&t, i, from) || t.Maybe && v[at]})
		}
	}
	for _, c := range changes {
		if c.holds {
			v[c.at] = true
		} else {
			delete(v, c.at)
		}
	}
}

// made reports whether byte i of a result depends on the values.
func (v values) made(t *transfer.Transfer, i int, from func(operand int) bool) bool {
	for _, p := range t.From {
		if p.Space == transfer.Memory {
			if from(int(p.Num)) {
				return true
			}
			continue
		}
		start, end := 0, p.Size
		switch {
		case t.Copy:
			start, end = i, i+1
		case t.Lane > 0:
			start = i / t.Lane * t.Lane
			end = start + t.Lane
		}
		for k := start; k < min(end, p.Size); k++ {
			if v[place{p.Space, p.Num, p.Off + k}] {
				return true
			}
		}
	}
	return false
}

// usedBy is a store through the values, or a continuation at them; nil if the instruction is neither.
func (v values) usedBy(inst *x86.Inst) *use {
	if inst.Flow == x86.FlowReturn {
		if v.inRegister(x86.RSP) {
			return &use{*inst, evidence.ClassReturnAV, evidence.Execute}
		}
		return nil
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		through := o.IsMemory && v.inAddress(&o.Memory)
		switch {
		case o.IsImm || o.Implicit:
		case inst.Flow == x86.FlowCall && (through || !o.IsMemory && v.inRegister(o.Reg)):
			return &use{*inst, evidence.ClassCallAVTainted, evidence.Execute}
		case inst.Flow == x86.FlowJump && (through || !o.IsMemory && v.inRegister(o.Reg)):
			return &use{*inst, evidence.ClassBranchAVTainted, evidence.Execute}
		}
		if through && o.Access.Writes() {
			return &use{*inst, evidence.ClassDestAVTainted, o.Access}
		}
	}
	return nil
}

func (v values) inAddress(m *x86.Memory) bool { return v.inRegister(m.Base) || v.inRegister(m.Index) }

func (v values) inRegister(r x86.Reg) bool {
	if !r.General() {
		return false
	}
	for i := range 8 {
		if v[place{transfer.General, uint8(r), i}] {
			return true
		}
	}
	return false
}
