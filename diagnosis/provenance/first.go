package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
)

// outsideAccess is the first access outside of an object, operand k of step at, as far as the steps before upTo have one; found: they do.
type outsideAccess struct {
	at, k, upTo int
	looked      int // accesses near the object
	found       bool
}

// first is the first access outside of an object before step n, through a pointer that was derived from it; it is operand k of step at. What
// the program does from there on is not defined. at is n if there is none in another place of the program, or none among the 20,000
// accesses near the object that are looked at. Reads that begin in the object do not count: code may read whole words.
func (f *follower) first(object *flow.Object, n int) (at, k int) {
	until := n
	if object.Freed >= 0 {
		until = min(n, object.Freed)
	}
	if f.outsides == nil {
		f.outsides = map[*flow.Object]*outsideAccess{}
	}
	x := f.outsides[object]
	if x == nil {
		x = &outsideAccess{upTo: max(object.Made, 0)}
		f.outsides[object] = x
	}
	const most = 20_000
	for ; x.upTo < until && !x.found && x.looked < most; x.upTo++ {
		f.outsideAt(object, x)
	}
	if !x.found || x.at >= until || f.ownPlace(x.at) == f.ownPlace(n) {
		return n, 0
	}
	return x.at, x.k
}

// outsideAt looks at the step x.upTo.
func (f *follower) outsideAt(object *flow.Object, x *outsideAccess) {
	const far = 16 << 20 // bytes from the object
	s, end := f.trace.Step(x.upTo), object.Addr+evidence.Addr(object.Size)
	if s.Inst == nil || s.Library {
		return
	}
	for k := range s.Inst.Operands {
		o := &s.Inst.Operands[k]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		l, known := f.trace.Extent(x.upTo, k)
		addr := l.Addr
		begins := addr >= object.Addr && addr < end
		if !known || l.Size == 0 || addr+far < object.Addr || addr > end+far || begins && (!o.Access.Writes() || addr+evidence.Addr(l.Size) <= end) {
			continue
		}
		if x.looked++; f.pointee(x.upTo, k) == object && (o.Access.Writes() || !f.program.Foreign(s.PC)) {
			x.at, x.k, x.found = x.upTo, k, true
			return
		}
	}
}
