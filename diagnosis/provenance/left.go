package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// left ends the way at memory operand k of step n, if it accesses the frame of a function that has returned, through an address that
// this function made.
func (f *follower) left(n, k int, l flow.Location) bool {
	sp := f.trace.Register(n, x86.RSP)
	if addr := uint64(l.Addr); addr < sp-mostStack || addr > sp+mostStack || f.trace.ObjectAt(l.Addr, n) != nil {
		return false
	}
	for _, pointer := range f.pointers(n, k) {
		made, way := f.addressMade(pointer, n)
		if made < 0 {
			continue
		}
		returned := f.returnFrom(made, n, l.Addr)
		if returned < 0 {
			continue
		}
		w := f.way
		w.AccessPC, w.access, w.Write = f.ownPlace(n), n, f.trace.Step(n).Inst.Operands[k].Access.Writes()
		w.Declared = f.variable(made)
		f.end(Left, f.handedOut(made, returned, way))
		return true
	}
	return false
}

// addressMade is the step at which a function made an address in its frame, from which a pointer was derived; -1: it is none. way are the
// stores of the pointer since, the latest first.
func (f *follower) addressMade(l flow.Location, n int) (made int, way []int) {
	for range mostSteps {
		d := f.trace.Define(l, n)
		switch d.Kind {
		case flow.Copied:
			from := d.From[0]
			if from.Size < 8 {
				return -1, nil
			}
			if from.Space == transfer.General && x86.Reg(from.Num) == x86.RSP {
				return d.At, way
			}
			if d.Part.Space == transfer.Memory {
				way = append(way, d.At)
			}
			l, n = from, d.At
		case flow.Computed:
			s := f.trace.Step(d.At)
			if s.Inst == nil || d.Part.Size < 8 {
				return -1, nil
			}
			if makesAddress(s.Inst) {
				return d.At, way
			}
			next, ok := f.pointerOf(d)
			if !ok {
				return -1, nil
			}
			l, n = next, d.At
		default:
			return -1, nil
		}
	}
	return -1, nil
}

// returnFrom is the last step at which a function returned whose frame an address is in, of those between the step that made the
// address and its use in the same thread; -1: there is none.
func (f *follower) returnFrom(made, used int, addr evidence.Addr) int {
	if f.trace.Step(made).Thread != f.trace.Step(used).Thread {
		return -1
	}
	found := -1
	for n := f.trace.Previous(used); n > made; n = f.trace.Previous(n) {
		// The return address is above the frame.
		s, sp := f.trace.Step(n), f.trace.Register(n, x86.RSP)
		if s.Inst != nil && s.Inst.Flow == x86.FlowReturn && sp > uint64(addr) && sp-uint64(addr) < mostStack && sp >= f.trace.Register(made, x86.RSP) {
			found = n
		}
	}
	return found
}

// handedOut is the step at which the function put the address into memory that is not its own, or else the one that made it.
func (f *follower) handedOut(made, returned int, way []int) int {
	top := f.trace.Register(returned, x86.RSP)
	for i := len(way) - 1; i >= 0 && way[i] < returned; i-- {
		for k := range f.trace.Step(way[i]).Inst.Operands {
			if o := &f.trace.Step(way[i]).Inst.Operands[k]; !o.IsMemory || !o.Access.Writes() {
				continue
			}
			if addr, known := f.trace.Address(way[i], k); known && (uint64(addr) > top || uint64(addr) < top-mostStack) {
				return way[i]
			}
		}
	}
	return made
}

// variable is the one whose address a step made; nil: it is not known.
func (f *follower) variable(made int) *Declared {
	s := f.trace.Step(made)
	for k := range s.Inst.Operands {
		if o := &s.Inst.Operands[k]; !o.IsMemory && !o.IsImm && o.Access.Writes() && o.Reg.General() {
			v, known := f.value(flow.Register(s.Thread, o.Reg, 8), made+1)
			if !known {
				return nil
			}
			return f.program.Declared(s.PC, func(r x86.Reg) uint64 { return f.trace.Register(made, r) }, evidence.Addr(v))
		}
	}
	return nil
}
