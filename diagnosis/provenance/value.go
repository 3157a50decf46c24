package provenance

import (
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// contradicted reports whether memory was found with another value than the step left there that last stored to it, as far as
// the trace has seen: then it lacks a store. Memory that was freed is filled by the heap, and an object of before the trace is
// not known to be one.
func (f *steps) contradicted(l flow.Location, n int, d flow.Definition) bool {
	if l.Space != transfer.Memory || d.At < 0 || d.Part != l || l.Size > 8 || f.trace.Step(d.At).Library {
		return false
	}
	var stored uint64
	var known bool
	switch {
	case d.Kind == flow.Copied && len(d.From) == 1:
		stored, known = f.value(d.From[0], d.At)
	case d.Kind == flow.Constant:
		stored, known = immediate(f.trace.Step(d.At).Inst, l.Size)
	}
	if !known {
		return false
	}
	found, known := f.loaded(l, n)
	return known && found != stored
}

// define is what gave bytes their value as they are before step n, unknown where the trace lacks a store to them.
func (f *steps) define(l flow.Location, n int) flow.Definition {
	d := f.trace.Define(l, n)
	if f.contradicted(l, n, d) {
		return flow.Definition{Kind: flow.Unknown, At: -1, Part: l}
	}
	return d
}

// lowest is the definition of the lowest bytes of a number, as many as one step gave it.
func (f *steps) lowest(l flow.Location, n int) flow.Definition {
	for size := l.Size; size > 1; size /= 2 {
		l.Size = size
		if d := f.define(l, n); d.Part == l {
			return d
		}
	}
	l.Size = 1
	return f.define(l, n)
}

// loaded is the value that step n found in memory, if it put just that in a general register.
func (f *steps) loaded(l flow.Location, n int) (uint64, bool) {
	s := f.trace.Step(n)
	if s.Inst == nil || s.Library {
		return 0, false
	}
	for k := range s.Inst.Operands {
		o := &s.Inst.Operands[k]
		if o.IsMemory || o.IsImm || !o.Access.Writes() || !o.Reg.General() {
			continue
		}
		to, next := flow.Register(s.Thread, o.Reg, l.Size), f.trace.Next(n)
		if next < 0 || f.trace.Step(next).Library {
			return 0, false
		}
		if d := f.trace.Define(to, next); d.At == n && d.Kind == flow.Copied && len(d.From) == 1 && d.From[0] == l {
			return f.value(to, next)
		}
	}
	return 0, false
}

// implied reports whether a register is known to be 0 where it is used: between its definition and its use, the code tested it, or the
// register that it was copied from, and branched. Compilers then use it in place of the constant 0, so that where its value came from may
// say nothing. It is the branch, -1 if there is none.
func (f *steps) implied(l flow.Location, used int, d flow.Definition) (branch int) {
	branch = -1
	if l.Space != transfer.General || d.At < 0 || d.Part != l {
		return -1
	}
	if v, known := f.value(l, used); !known || v != 0 {
		return -1
	}
	for n := f.trace.Previous(used); n > d.At; n = f.trace.Previous(n) {
		// Going back, the branch comes before the test.
		s := f.trace.Step(n)
		if s.Inst == nil {
			continue
		}
		if s.Inst.Flow == x86.FlowBranch {
			branch = n
		} else if branch >= 0 && (testsZero(s.Inst, x86.Reg(l.Num)) || f.testsSource(n, d)) {
			return branch
		}
	}
	return -1
}

// found0 ends the way at a branch that found a register to be 0 before step n: at the branch if the 0 is of memory to which nothing had been
// stored, as to the pointer in the last element of a list. Else the way is not decided.
func (f *follower) found0(l flow.Location, n, branch int) {
	if f.depth < mostDepth {
		inner := f.inner()
		inner.past = true
		if inner.follow(l, n); inner.way.End == Zeroed || inner.way.FromMemory() {
			f.end(Tested, branch)
			return
		}
	}
	f.end(Undecided, n)
}

// testsSource reports whether step n compares with 0 the register that another one was copied from, and that still has the value.
func (f *steps) testsSource(n int, copied flow.Definition) bool {
	if copied.Kind != flow.Copied || copied.From[0].Space != transfer.General {
		return false
	}
	from := copied.From[0]
	return testsZero(f.trace.Step(n).Inst, x86.Reg(from.Num)) && f.trace.Define(from, n).At < copied.At
}

// testsZero reports whether an instruction compares a register with 0.
func testsZero(inst *x86.Inst, r x86.Reg) bool {
	o := inst.Operands
	if len(o) < 2 || o[0].IsMemory || o[0].IsImm || o[0].Reg != r {
		return false
	}
	switch inst.Op {
	case "test", "or", "and":
		return !o[1].IsMemory && !o[1].IsImm && o[1].Reg == r
	case "cmp":
		return o[1].IsImm && o[1].Imm == 0
	}
	return false
}

// value is what up to 8 bytes held before step n, if the trace has it. Of memory to which instructions have added, it is the sum of the
// value before and all that they added.
func (f *steps) value(l flow.Location, n int) (uint64, bool) {
	size, added := min(l.Size, 8), uint64(0)
	sum := func(v uint64, known bool) (uint64, bool) { return low64(v+added, size), known }
	const most = 256
	for range most {
		if n >= f.trace.Len() {
			n = f.trace.Len() - 1
		}
		if l.Space == transfer.General && f.trace.Step(n).Thread == l.Thread {
			return sum(f.trace.Register(n, x86.Reg(l.Num))>>(8*l.Off), true)
		}
		d := f.trace.Define(l, n)
		switch {
		case d.Part.Size < size:
			return 0, false
		case d.Kind == flow.Copied:
			l, n = d.From[0], d.At
		case d.Kind == flow.Constant && !f.trace.Step(d.At).Library:
			return sum(immediate(f.trace.Step(d.At).Inst, size))
		case d.Kind == flow.Constant && d.Call == "calloc":
			return sum(0, true)
		default:
			v, ok := f.addedTo(l, d)
			if !ok {
				return 0, false
			}
			added, n = added+v, d.At
		}
	}
	return 0, false
}

// addedTo is the number that an instruction added to memory; ok is false if it did something else there.
func (f *steps) addedTo(l flow.Location, d flow.Definition) (v uint64, ok bool) {
	if d.Kind != flow.Computed || l.Space != transfer.Memory || d.Part != l {
		return 0, false
	}
	step := f.trace.Step(d.At)
	o := step.Inst.Operands
	if len(o) == 0 || !o[0].IsMemory || o[0].Size != l.Size {
		return 0, false
	}
	switch op := step.Inst.Op; {
	case op == "inc":
		return 1, true
	case op == "dec":
		return ^uint64(0), true
	case op != "add" && op != "sub" || len(o) < 2:
		return 0, false
	case o[1].IsImm:
		v = uint64(o[1].Imm)
	case o[1].Reg.General():
		v = f.trace.Register(d.At, o[1].Reg)
	default:
		return 0, false
	}
	if step.Inst.Op == "sub" {
		v = -v
	}
	return v, true
}

// low64 are the lowest bytes of a number, at most 8.
func low64(v uint64, size int) uint64 {
	if size < 8 {
		v &= 1<<(8*size) - 1
	}
	return v
}

// immediate is the constant that an instruction stores.
func immediate(inst *x86.Inst, size int) (uint64, bool) {
	v, ok := constantOperand(inst)
	if !ok || inst.Op != "mov" {
		return 0, inst.Op == "xor" || inst.Op == "sub"
	}
	return low64(v, size), true
}
