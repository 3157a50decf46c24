package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// frames are the activations of functions in a trace. They are told by the stack pointer, so that jumps out of
// several functions (longjmp) end those.
type frames struct {
	trace   *flow.Trace
	program Program
	// call is the step that called the function of a step; none: it was called before the trace. before is the last jump before it in the
	// same activation that has several ways; none: there is none.
	call, before []int
	leaving      map[branchWay]bool
	sparing      map[sparedWay]bool
}

// none stands for no step.
const none = -1

// branchWay is one way from a branch, and the instruction that it may lead to.
type branchWay struct{ from, to evidence.Addr }

// sparedWay is a way from a branch that was not taken, between the instruction that gave something its value and one that used it.
type sparedWay struct{ from, made, used evidence.Addr }

func newFrames(t *flow.Trace, p Program) *frames {
	f := &frames{trace: t, program: p, call: make([]int, t.Len()), before: make([]int, t.Len()), leaving: map[branchWay]bool{}, sparing: map[sparedWay]bool{}}
	type activation struct {
		call, last int
		sp         uint64 // when the function was entered
	}
	type thread struct {
		stack  []activation
		called int // the step before was this call
	}
	threads := map[uint32]*thread{}
	for n := range t.Len() {
		s := t.Step(n)
		if s.Library {
			f.call[n], f.before[n] = none, none
			continue
		}
		of := threads[s.Thread]
		if of == nil {
			of = &thread{[]activation{{none, none, ^uint64(0)}}, none}
			threads[s.Thread] = of
		}
		sp := t.Register(n, x86.RSP)
		for len(of.stack) > 1 && sp > of.stack[len(of.stack)-1].sp {
			of.stack = of.stack[:len(of.stack)-1]
		}
		const address = 8 // bytes of a return address
		if of.called != none && sp == t.Register(of.called, x86.RSP)-address {
			of.stack = append(of.stack, activation{of.called, none, sp})
		}
		top := &of.stack[len(of.stack)-1]
		f.call[n], f.before[n] = top.call, top.last
		of.called = none
		switch {
		case s.Inst == nil:
		case s.Inst.Flow == x86.FlowCall:
			of.called = n
		case s.Inst.Flow == x86.FlowBranch, s.Inst.Flow == x86.FlowJump && !s.Inst.HasTarget:
			top.last = n
		}
	}
	return f
}

// decider is the last branch before step n without which the code might not have come there: its other way can leave the function
// without that. If the function has none, its caller is asked. known is false where the trace does not have the beginning of one
// of these functions; at is none then, and also where nothing decided.
func (f *frames) decider(n int) (at int, known bool) {
	const most = 4000 // branches, in all
	for looked := 0; looked < most; {
		to := f.trace.Step(n).PC
		for k := f.before[n]; k != none; k = f.before[k] {
			if f.decides(k, to) {
				return k, true
			}
			if looked++; looked == most {
				return none, false
			}
		}
		call := f.call[n]
		if call == none {
			return none, false
		}
		if !f.program.Own(f.trace.Step(call).PC) {
			return none, true // a library, or the start of the program, called the code
		}
		n = call
	}
	return none, false
}

// spared are branches whose other way may lead to an instruction that writes something, between the step that gave it its value and one
// that uses that, in the activation that gave it: they decided that it kept the value (potential dependence: Gyimothy et al., FSE 1999).
// The nearest to the use is the first.
func (f *frames) spared(made, used int, writes func(*x86.Inst) bool) (list []int) {
	const (
		most       = 4
		mostSpared = 200 // branches that are looked at
	)
	way := sparedWay{made: f.trace.Step(made).PC, used: f.trace.Step(used).PC}
	at := used
	for at > made && (f.call[at] != f.call[made] || f.trace.Step(at).Library) {
		at = f.trace.Previous(at)
	}
	steps := 0
	for at = f.before[max(at, made)]; at > made && len(list) < most && steps < mostSpared; at = f.before[at] {
		steps++
		other, ok := f.other(at)
		if !ok {
			continue
		}
		way.from = other
		reaches, known := f.sparing[way]
		if !known {
			reaches = f.reaches(way, writes)
			f.sparing[way] = reaches
		}
		if reaches {
			list = append(list, at)
		}
	}
	return list
}

// other is the way that a step did not take, if it is a conditional jump.
func (f *frames) other(n int) (evidence.Addr, bool) {
	s := f.trace.Step(n)
	if s.Inst == nil || s.Inst.Flow != x86.FlowBranch || !s.Inst.HasTarget {
		return 0, false
	}
	target := evidence.Addr(s.Inst.Target)
	if next := f.trace.Next(n); next >= 0 && f.trace.Step(next).PC == target {
		return s.PC + evidence.Addr(s.Inst.Len), true
	}
	return target, true
}

// reaches reports whether the code has such a way to an instruction that is wanted, in the same function.
func (f *frames) reaches(way sparedWay, wanted func(*x86.Inst) bool) bool {
	const most = 500 // instructions
	return f.search(way.from, most, []evidence.Addr{way.made, way.used}, func(in *x86.Inst) bool { return in != nil && wanted(in) }) == found
}

// decides reports whether a step is a branch from which the code could have left the function without an instruction.
func (f *frames) decides(n int, to evidence.Addr) bool {
	s := f.trace.Step(n)
	if s.Inst == nil {
		return false
	}
	if s.Inst.Flow == x86.FlowJump && !s.Inst.HasTarget {
		return f.program.Own(s.PC) // a table of ways
	}
	other, ok := f.other(n)
	return ok && f.leaves(branchWay{other, to})
}

// leaves reports whether the code has a way from an instruction to the end of the function that does not lead by another instruction.
// Where it is not known how the code continues, it has.
func (f *frames) leaves(w branchWay) bool {
	if known, ok := f.leaving[w]; ok {
		return known
	}
	const most = 5000 // instructions
	ends := func(in *x86.Inst) bool {
		return in == nil || in.Flow == x86.FlowReturn || (in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch) && !in.HasTarget
	}
	result := f.search(w.from, most, []evidence.Addr{w.to}, ends) != missing
	f.leaving[w] = result
	return result
}

// searched is the outcome of a search of code.
type searched int

const (
	missing searched = iota // no way has a wanted one
	found
	tooFar // there is more code than the bound allows
)

// search goes along the ways of the code from an instruction, within a function and not past the barriers, until it finds one that
// is wanted; nil stands for bytes that are no instruction.
func (f *frames) search(from evidence.Addr, most int, barriers []evidence.Addr, wanted func(*x86.Inst) bool) searched {
	seen, list := map[evidence.Addr]bool{}, []evidence.Addr{from}
	for _, b := range barriers {
		seen[b] = true
	}
	for len(list) > 0 {
		pc := list[len(list)-1]
		list = list[:len(list)-1]
		if seen[pc] {
			continue
		}
		if len(seen) >= most {
			return tooFar
		}
		seen[pc] = true
		in, _ := f.program.Decode(pc)
		if wanted(in) {
			return found
		}
		if in == nil {
			continue
		}
		if in.HasTarget && (in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch) {
			list = append(list, evidence.Addr(in.Target))
		}
		switch in.Flow {
		case x86.FlowJump, x86.FlowReturn, x86.FlowTrap: // it does not continue after it
		default:
			list = append(list, pc+evidence.Addr(in.Len))
		}
	}
	return missing
}
