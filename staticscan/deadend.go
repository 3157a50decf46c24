package staticscan

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// Bounds of the search for calls that never return.
const (
	maxDeadEnds = 4   // functions that jump on to one another
	maxCallees  = 256 // functions called
)

// withoutDeadEnds is the analysis of a function in which control does not pass from calls that never return to what lies behind
// them. It matters where compilers put several such calls one behind the other, each with a way of its own that leads there.
func (w *processView) withoutDeadEnds(a *analysis) *analysis {
	var ends []int
	g := a.flow.graph
	returns := map[evidence.Addr]bool{}
	for b := range g.blocks {
		last := g.blocks[b].end - 1
		if len(g.blocks[b].next) != 1 || g.insts[last].Flow != x86.FlowCall || !g.insts[last].HasTarget ||
			len(g.blocks[g.blocks[b].next[0]].prev) < 2 {
			continue
		}
		to := w.callee(evidence.Addr(g.insts[last].Target))
		does, known := returns[to]
		if !known {
			does = len(returns) >= maxCallees || w.returns(to, map[evidence.Addr]bool{})
			returns[to] = does
		}
		if !does {
			ends = append(ends, b)
		}
	}
	if len(ends) == 0 {
		return a
	}
	cut := newGraph(g.insts, uint64(a.function.entry))
	for _, b := range ends {
		cut.cut(b)
	}
	again := analyseGraph(cut, w.surroundings())
	again.function, again.problems = a.function, a.problems
	return again
}

// returns reports whether a function may return: its code has a return, jumps to where that is not known, or on to a function that may.
func (w *processView) returns(entry evidence.Addr, seen map[evidence.Addr]bool) bool {
	if seen[entry] || len(seen) >= maxDeadEnds {
		return !seen[entry]
	}
	seen[entry] = true
	fn, err := functionAt(w.process, entry)
	if err != nil || fn.guessed || fn.entry != entry {
		return true
	}
	insts, problems := fn.decode(w.process)
	if len(problems) > 0 || len(insts) == 0 {
		return true
	}
	for i := range insts {
		in := &insts[i]
		leaves := in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch && in.HasTarget
		switch {
		case in.Flow == x86.FlowReturn, in.Flow == x86.FlowJump && !in.HasTarget:
			return true
		case leaves && !fn.contains(evidence.Addr(in.Target)) && w.returns(w.callee(evidence.Addr(in.Target)), seen):
			return true
		}
	}
	return !slices.ContainsFunc(insts, func(in x86.Inst) bool { return in.Flow == x86.FlowCall || in.Flow == x86.FlowTrap })
}
