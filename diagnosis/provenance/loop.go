package provenance

import (
	"iter"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// repeats are the last steps of the thread at which the same instruction was executed, the latest first.
func (f *numbers) repeats(n int) (list []int) {
	pc := f.trace.Step(n).PC
	for at := n; at >= 0 && len(list) < 4 && n-at < mostSteps; at = f.trace.Previous(at) {
		if s := f.trace.Step(at); s.PC == pc && !s.Library {
			list = append(list, at)
		}
	}
	return list
}

// bound finds what a loop compares its count with. list are steps at which the same instruction made
// the count, the latest first. The loop's condition is a conditional jump between two of them in whose comparison the count
// takes part; the other side is the bound, as it was at the latest comparison.
func (f *follower) bound(list []int) (l flow.Location, n int, ok bool) {
	pc := f.trace.Step(list[0]).PC
	for at, d := range f.comparisons(list) {
		if len(d.From) != 2 {
			continue
		}
		first, second := f.isCount(d.From[0], d.At, pc), f.isCount(d.From[1], d.At, pc)
		if first == second {
			continue
		}
		other := d.From[0]
		if first {
			other = d.From[1]
		}
		f.link(Bound, at, other)
		delete(f.counts, pc)
		return other, d.At, true
	}
	return l, 0, false
}

// comparisons are the branches of a loop's latest round, the latest first, with what made the flags that they read. list are as for
// bound.
func (f *numbers) comparisons(list []int) iter.Seq2[int, flow.Definition] {
	return func(yield func(int, flow.Definition) bool) {
		for at := list[0]; at > list[1]; at = f.trace.Previous(at) {
			s := f.trace.Step(at)
			if s.Library || s.Inst == nil || s.Inst.Flow != x86.FlowBranch {
				continue
			}
			for _, flag := range transfer.Condition(s.Inst) {
				if d := f.trace.Define(f.located(at, flag), at); d.At > list[2] && !yield(at, d) {
					return
				}
			}
		}
	}
}

// looped ends the way at the loop that counted to the value, unless most of the value was there when the loop began: a number
// larger than the loop has added since, and no good address. list are as for bound, to is what the latest made.
func (f *follower) looped(list []int, to flow.Location) bool {
	const many = 16 // rounds of a loop that had begun before the trace
	first, times, began := f.uncounted(to, list[0]+1)
	if !began && times < many {
		return false
	}
	if began && (f.used == nil || magnitude(first, to.Size) > magnitude(*f.used-first, to.Size) && !f.points(first, list[0])) {
		return false
	}
	at := f.condition(list)
	if at < 0 {
		return false
	}
	f.end(Loop, at)
	return true
}

// uncounted is the count before its instruction made it the first time of so many, if the trace has it.
func (f *numbers) uncounted(l flow.Location, n int) (first uint64, times int, known bool) {
	pc := evidence.Addr(0)
	for range mostSteps {
		d := f.define(l, n)
		from := f.operands(d)
		switch single := d.At >= 0 && len(from) == 1; {
		case single && d.Kind == flow.Copied:
		case single && (pc == 0 || pc == f.trace.Step(d.At).PC) && increments(f.trace.Step(d.At).Inst):
			pc = f.trace.Step(d.At).PC
			times++
		default:
			first, known = f.value(l, n)
			return first, times, known
		}
		l, n = from[0], d.At
	}
	return 0, times, false
}

// increments reports whether an instruction adds a constant, if one of its operands is a constant.
func increments(inst *x86.Inst) bool {
	switch inst.Op {
	case "add", "sub", "inc", "dec", "lea":
		return true
	}
	return false
}

// condition is the step of a loop's latest round that compares the count with a constant and branches; or else the one that jumps
// back. -1: there is neither.
func (f *numbers) condition(list []int) int {
	pc := f.trace.Step(list[0]).PC
	for at, d := range f.comparisons(list) {
		if from := values(d); len(from) == 1 && f.isCount(from[0], d.At, pc) {
			return at
		}
	}
	back := -1
	for at := list[0]; at > list[1]; at = f.trace.Previous(at) {
		s := f.trace.Step(at)
		if s.Library || s.Inst == nil || s.Inst.Flow != x86.FlowBranch && s.Inst.Flow != x86.FlowJump {
			continue
		}
		if s.Inst.HasTarget && s.Inst.Target <= s.Inst.PC && f.trace.Register(at, x86.RSP) == f.trace.Register(list[0], x86.RSP) {
			back = at
		}
	}
	return back
}

// isCount reports whether bytes come, by copies and additions of constants, from a step of the instruction that counts.
func (f *numbers) isCount(l flow.Location, n int, pc evidence.Addr) bool {
	for range 32 {
		d := f.define(l, n)
		if d.At < 0 {
			return false
		}
		if f.trace.Step(d.At).PC == pc {
			return true
		}
		from := f.operands(d)
		if len(from) != 1 {
			return false
		}
		l, n = from[0], d.At
	}
	return false
}
