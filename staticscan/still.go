package staticscan

import (
	"slices"

	"diagnose/image/x86"
)

// still reports whether a value is certain to be what the comparison saw, and not only what memory holds now: it is in a register,
// in a word of the frame that no other code has the address of, or made of such values.
func (s *backwardSlice) still(n *node, depth int) bool {
	switch {
	case n == nil || depth > maxDepth:
		return false
	case n.isExact || n.op == opConst || n.settled:
		return true
	case n.op == opCopy:
		return !n.advanced && s.still(n.a, depth+1)
	case n.op == opSum:
		return s.still(n.a, depth+1) && s.still(n.b, depth+1)
	}
	return n.op == opLoad && n.at.kind == stack && !n.at.varies && !s.mayEscape(n) && s.unstoredSince(n)
}

// writesMemory reports whether an instruction stores to an operand in memory.
func writesMemory(in *x86.Inst) bool {
	return slices.ContainsFunc(in.Operands, func(o x86.Operand) bool { return o.IsMemory && o.Access.Writes() && !o.Implicit })
}

// mayEscape reports whether other code may have the address of a word of the frame: of its variable, or, where that is not known, of
// anything that begins at or before it.
func (s *backwardSlice) mayEscape(n *node) bool {
	if s.escapes(n, n.pos) {
		return true
	}
	if addr, ok := s.location(n); ok {
		if _, ok := s.memoryVariable(addr, n.pos); ok {
			return false
		}
	}
	for taken := range s.a.stackAddresses {
		if taken.base == n.at.base && taken.off <= n.at.off {
			return true
		}
	}
	return false
}

// unstoredSince reports whether the function stored nothing into a word of its frame, on any way from where it was loaded to where the
// frame stands.
func (s *backwardSlice) unstoredSince(n *node) bool {
	stores := func(i int) bool {
		to := s.a.addrs[i]
		return s.storesInto(i, n.at, n.size) || to.kind == stack && (to.varies || to.base != n.at.base) && writesMemory(&s.a.flow.insts[i])
	}
	return !slices.ContainsFunc(s.a.flow.reaching(s.now, func(i int) bool { return i == n.def || stores(i) }), func(i int) bool {
		return i != n.def || stores(i)
	})
}
