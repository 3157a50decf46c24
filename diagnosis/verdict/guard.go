package verdict

import (
	"diagnose/evidence"
	"diagnose/image"
)

// guard reports whether the function that a changed store is in read the value there again itself, before other code failed by it. So
// functions use marks that they put after the last element of an array. The store is then as it should be, and a later store may be
// missing.
func (ce *chainExperiments) guard(x *change) bool {
	if x.link < 0 || ce.chain.victim.damaged() {
		return false
	}
	l := &ce.chain.links[min(x.link, ce.headline())]
	if l.returned != nil || l.access.By != evidence.ByProgram || !l.constant() {
		return false
	}
	own := functionAt(ce.chain.Process, l.access.PC)
	stored := false
	for i := range l.log.Accesses {
		switch a := &l.log.Accesses[i]; {
		case *a == l.access:
			stored = true
		case !stored || a.Thread != l.access.Thread || !l.victim.concerns(l.log, a):
		case writesMemory(a.Kind):
			return false
		case a.New == l.access.New && own != "" && functionAt(ce.chain.Process, a.PC) == own && !ce.failsIn(own):
			return true
		}
	}
	return false
}

// constant reports whether the store's value is in the code.
func (l *link) constant() bool {
	n := len(l.store.Steps)
	return n > 0 && l.store.Steps[n-1].Kind == evidence.OriginConstant
}

// functionAt is the function at an instruction, not one that was inlined there; empty: it is not known.
func functionAt(p *image.Process, pc evidence.Addr) string {
	calls := p.Symbolize(pc, image.AtInstruction)
	if len(calls) == 0 {
		return ""
	}
	return calls[len(calls)-1].Site.Function
}

// failsIn reports whether the failing instruction is in a function.
func (ce *chainExperiments) failsIn(function string) bool {
	s := ce.chain.Case.Failure.Site
	return s != nil && functionAt(ce.chain.Process, s.PC) == function
}
