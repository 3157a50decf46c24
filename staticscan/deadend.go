package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Bounds of the search for calls that never return.
const (
	maxDeadEnds = 4   // functions that jump on to one another
	maxCallees  = 256 // functions looked at
)

// withoutDeadEnds is the analysis of a function without the edges from calls that never return to the instructions after them. Compilers
// put several such calls next to each other, and each is reached by a branch of its own.
func (w *processView) withoutDeadEnds(a *analysis) *analysis {
	var ends []int
	g := a.flow.graph
	for b := range g.blocks {
		last := g.blocks[b].end - 1
		if len(g.blocks[b].next) == 1 && g.insts[last].Flow == x86.FlowCall && len(g.blocks[g.blocks[b].next[0]].prev) > 1 && w.endsAt(&g.insts[last]) {
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

// endsAt reports whether an instruction calls a function that never returns.
func (w *processView) endsAt(in *x86.Inst) bool {
	if in.Flow != x86.FlowCall {
		return false
	}
	to := w.fixedTarget(in)
	return to != 0 && !w.returns(to)
}

// returns reports whether a function may return: its code has a return, jumps to where that is not known, or on to a function that may.
func (w *processView) returns(entry evidence.Addr) bool {
	does, known := w.returning[entry]
	if !known {
		does = w.mayReturn(entry, map[evidence.Addr]bool{})
		w.returning[entry] = does
	}
	return does
}

func (w *processView) mayReturn(entry evidence.Addr, seen map[evidence.Addr]bool) bool {
	if seen[entry] {
		return false // but for what else it does
	}
	if len(seen) >= maxDeadEnds || len(w.returning)+len(seen) >= maxCallees {
		return true
	}
	seen[entry] = true
	fn, err := functionAt(w.process, entry)
	if err != nil || fn.guessed || fn.entry != entry {
		return true
	}
	insts, problems := fn.decode(w.process)
	if len(problems) > 0 {
		return true
	}
	ends := false
	for i := range insts {
		in := &insts[i]
		leaves := in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch && in.HasTarget
		switch {
		case in.Flow == x86.FlowReturn, in.Flow == x86.FlowJump && !in.HasTarget:
			return true
		case leaves && !fn.contains(evidence.Addr(in.Target)):
			if w.mayReturn(w.fixedTarget(in), seen) {
				return true
			}
			ends = true
		case in.Flow == x86.FlowCall, in.Flow == x86.FlowTrap:
			ends = true
		}
	}
	return !ends
}
