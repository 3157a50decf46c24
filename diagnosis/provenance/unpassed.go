package provenance

import (
	"diagnose/flow"
	"diagnose/image/x86"
)

// Unpassed finds the last call of the program's own code that step n is in, or before; -1: there is none. Its arguments from index first
// to last, from 0, are in registers that hand over numbers and pointers, or not looked at. missing: one of these registers had what a
// function left there that had returned before, so the call has no such argument.
func Unpassed(t *flow.Trace, p Program, n, first, last int) (call int, missing bool) {
	f := newFollower(t, p)
	if call = f.ownCall(n); call < 0 {
		return -1, false
	}
	for i := first; i <= last && i < len(x86.ArgumentRegisters); i++ {
		if set := t.Define(flow.Register(t.Step(call).Thread, x86.ArgumentRegisters[i], 8), call).At; set >= 0 && f.leftBy(set, call) {
			return call, true
		}
	}
	return call, false
}

// leftBy reports whether the function of step set had returned before step now.
func (f *steps) leftBy(set, now int) bool {
	if f.trace.Step(set).Library {
		return true
	}
	sp := f.trace.Register(set, x86.RSP)
	for n := f.trace.Previous(now); n > set; n = f.trace.Previous(n) {
		if s := f.trace.Step(n); s.Inst != nil && s.Inst.Flow == x86.FlowReturn && f.trace.Register(n, x86.RSP) >= sp {
			return true
		}
	}
	return false
}
