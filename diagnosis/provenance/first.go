package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
)

// first is the first access outside of an object before step n, through a pointer that was derived from it; it is operand k of step at. What
// the program does from there on is not defined. at is n if there is none in another place of the program.
func (f *follower) first(object *flow.Object, n int) (at, k int) {
	const (
		far  = 16 << 20 // bytes from the object
		most = 20_000   // accesses that are looked at
	)
	end := object.Addr + evidence.Addr(object.Size)
	until := n
	if object.Freed >= 0 {
		until = min(n, object.Freed)
	}
	looked := 0
	for at := max(object.Made, 0); at < until && looked < most; at++ {
		s := f.trace.Step(at)
		if s.Inst == nil || s.Library {
			continue
		}
		for k := range s.Inst.Operands {
			o := &s.Inst.Operands[k]
			if !o.IsMemory || o.Access == "" {
				continue
			}
			addr, known := f.trace.Address(at, k)
			if !known || addr+far < object.Addr || addr > end+far || addr >= object.Addr && addr+evidence.Addr(max(o.Size, 1)) <= end {
				continue
			}
			if looked++; f.pointee(at, k) != object || !o.Access.Writes() && f.program.Foreign(s.PC) {
				continue
			}
			if f.ownPlace(at) == f.ownPlace(n) {
				return n, 0
			}
			return at, k
		}
	}
	return n, 0
}
