package provenance

import (
	"slices"

	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// place is memory from which an address was loaded, with the steps that stored and loaded it.
type place struct {
	l              flow.Location
	stored, loaded int
}

// placeSearch finds the memory through which addresses came.
type placeSearch struct{ *follower }

// mostPlaces bounds through how much memory an address is followed: a loop that counts a pointer in memory stores it each time.
const mostPlaces = 32

// of is the memory through which an address came, the last first. fromHeap: it begins where the heap handed out the object.
func (f placeSearch) of(l flow.Location, n int) (list []place, fromHeap bool) {
	for range mostSteps {
		d := f.define(l, n)
		if d.At < 0 || d.Part != l { // several stores made it, and no pointer was stored
			return list, false
		}
		if l.Space == transfer.Memory {
			if len(list) == mostPlaces {
				return list, false
			}
			list = append(list, place{l, d.At, n})
		}
		switch d.Kind {
		case flow.Copied:
			if l, n = d.From[0], d.At; l.Size < 8 {
				return list, false
			}
		case flow.Computed:
			next, ok := f.pointerOf(d)
			if !ok {
				return list, false
			}
			l, n = next, d.At
		default:
			return list, d.Kind == flow.Result
		}
	}
	return list, false
}

// BrokenHolder is the way to a store that broke a rule, and put a pointer there by which step n came to what it accessed or read; nil: there is
// none. What such a pointer leads to is not what the code takes it for, whoever stored the values there.
func BrokenHolder(t *flow.Trace, p Program, n int) *Way {
	if n >= 0 && (t.Step(n).Inst == nil || !p.Code(t.Step(n).PC)) { // a jump led there
		n = t.Previous(n)
	}
	if n < 0 || t.Step(n).Inst == nil {
		return nil
	}
	f := placeSearch{newFollower(t, p)}
	for _, stored := range f.holders(n) {
		inst := t.Step(stored).Inst
		if inst == nil || !p.Own(t.Step(stored).PC) {
			continue
		}
		for k := range inst.Operands {
			if o := &inst.Operands[k]; !o.IsMemory || !o.Access.Writes() || o.Implicit {
				continue
			}
			if f.way = (&Way{}); f.access(stored, k) {
				return f.way
			}
		}
	}
	return nil
}

// holders are the steps that stored the pointers by which step n accessed memory, or by which what it read in registers had been loaded, and
// those by which these pointers had been; the nearest first.
func (f placeSearch) holders(n int) (stored []int) {
	const most = 8
	var steps []int
	load := func(l flow.Location, n int, holds bool) {
		places, _ := f.of(l, n)
		for _, x := range places {
			if steps = append(steps, x.loaded); holds && len(stored) < mostPlaces && !slices.Contains(stored, x.stored) {
				stored = append(stored, x.stored)
			}
		}
	}
	for _, o := range f.trace.Step(n).Inst.Operands {
		if !o.IsMemory && !o.IsImm && o.Access.Reads() && o.Reg.General() && o.Reg != x86.RSP {
			load(flow.Register(f.trace.Step(n).Thread, o.Reg, 8), n, false)
		}
	}
	steps = append(steps, n)
	for looked := 0; looked < len(steps) && looked < most; looked++ {
		n := steps[looked]
		if f.trace.Step(n).Inst == nil {
			continue
		}
		for k := range f.trace.Step(n).Inst.Operands {
			if !accessesMemory(&f.trace.Step(n).Inst.Operands[k]) {
				continue
			}
			for _, l := range f.pointers(n, k) {
				load(l, n, true)
			}
		}
	}
	return stored
}
