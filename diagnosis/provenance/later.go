package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// Operand is the memory operand by which step n accesses memory; nil: it has none.
func Operand(t *flow.Trace, n int) *x86.Memory {
	if k := accessed(t.Step(n).Inst); k >= 0 {
		return &t.Step(n).Inst.Operands[k].Memory
	}
	return nil
}

// accessed is the first operand by which an instruction accesses memory; -1: there is none.
func accessed(inst *x86.Inst) int {
	if inst == nil {
		return -1
	}
	for k := range inst.Operands {
		if o := &inst.Operands[k]; o.IsMemory && o.Access != "" {
			return k
		}
	}
	return -1
}

// Later is the way of an access that the instruction of step n made after the trace, at an address outside of the object that the pointer
// of step n was derived from; nil: that object is not known, or it has the address.
func Later(t *flow.Trace, p Program, n int, addr evidence.Addr) *Way {
	f := newFollower(t, p)
	k := accessed(t.Step(n).Inst)
	if k < 0 || p.Foreign(t.Step(n).PC) {
		return nil
	}
	w := f.way
	w.Write, w.AccessPC, w.access = t.Step(n).Inst.Operands[k].Access.Writes(), f.ownPlace(n), n
	if w.Object = f.pointee(n, k); w.Object == nil {
		if w.Declared = f.declared(n, k); w.Declared == nil {
			return nil
		}
	}
	if w.Holds(addr) {
		return nil
	}
	w.Beyond = w.distance(addr)
	f.end(Outside, n)
	return w
}

// Strayed is the first step at which the instruction of step n, in the same frame, accessed memory outside of the heap object that its pointer
// was derived from; -1: it did not, or none of these objects is known.
func Strayed(t *flow.Trace, p Program, n int) int {
	failing, stack := t.Step(n), t.Register(n, x86.RSP)
	k := accessed(failing.Inst)
	if k < 0 {
		return -1
	}
	var arrivals []int
	for at := n; at >= 0; at = t.Previous(at) {
		if s := t.Step(at); s.PC == failing.PC && !s.Library && t.Register(at, x86.RSP) == stack {
			arrivals = append(arrivals, at)
		}
	}
	f := newFollower(t, p)
	for _, at := range slices.Backward(arrivals) { // the earliest first: a derivation ends at the one before
		l, known := t.Extent(at, k)
		if o := f.pointee(at, k); known && o != nil && !(&Way{Object: o}).Holds(l.Addr) {
			return at
		}
	}
	return -1
}

// bounds are the addresses from the start to the end of what the way's access was outside of.
func (w *Way) bounds() (start, end evidence.Addr) {
	if w.Object != nil {
		return w.Object.Addr, w.Object.Addr + evidence.Addr(w.Object.Size)
	}
	return w.Declared.Addr, w.Declared.end()
}

// distance is how far from that an address is, as Beyond has it.
func (w *Way) distance(addr evidence.Addr) int64 {
	start, end := w.bounds()
	if addr >= end {
		return int64(addr-end) + 1
	}
	return int64(addr) - int64(start)
}

// Holds reports whether an address is in what the access of a way that ends Outside was outside of.
func (w *Way) Holds(addr evidence.Addr) bool {
	start, end := w.bounds()
	return addr >= start && addr < end
}
