package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// repeats are the last steps of the thread at which the same instruction was executed, the latest first.
func (f *follower) repeats(n int) (list []int) {
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
	for at := list[0]; at > list[1]; at = f.trace.Previous(at) {
		s := f.trace.Step(at)
		if s.Library || s.Inst == nil || s.Inst.Flow != x86.FlowBranch {
			continue
		}
		for _, flag := range transfer.Condition(s.Inst) {
			d := f.trace.Define(f.located(at, flag), at)
			if d.At <= list[2] || len(d.From) != 2 {
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
	}
	return l, 0, false
}

// isCount reports whether bytes come, by copies and additions of constants, from a step of the instruction that counts.
func (f *follower) isCount(l flow.Location, n int, pc evidence.Addr) bool {
	for range 32 {
		d := f.trace.Define(l, n)
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
