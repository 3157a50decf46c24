package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// left ends the way at memory operand k of step n, if it accesses the frame of a function that has returned, through an address that
// this function made. It may be a function of another thread.
func (f *follower) left(n, k int, l flow.Location) bool {
	if !f.trace.OnStack(l.Addr) || f.heapObject(l.Addr, n) {
		return false
	}
	for _, pointer := range f.pointers(n, k) {
		if x86.Reg(pointer.Num) == x86.RBP && ofStackPointer(f.trace.Define(pointer, n)) {
			continue // the frame pointer of a function that has not returned (System V ABI, 3.2.1: it is restored)
		}
		made, ok := f.addressMade(pointer, n)
		if !ok {
			continue
		}
		returned := f.returnFrom(made.At, n, l.Addr)
		if returned < 0 {
			continue
		}
		w := f.way
		w.AccessPC, w.access, w.Write = f.ownPlace(n), n, f.trace.Step(n).Inst.Operands[k].Access.Writes()
		w.Declared = f.pointed(made)
		f.end(Left, f.calledFrom(made.At, f.handedOut(made.At, returned, f.storesSince(pointer, n))))
		return true
	}
	return false
}

// heapObject reports whether an address is in an object that the heap made. A thread's stack may be one that was mapped.
func (f *steps) heapObject(addr evidence.Addr, n int) bool {
	o := f.trace.ObjectAt(addr, n)
	return o != nil && !o.Mapped()
}

// addressMade is where a function made an address in its frame, from which a pointer was derived; ok is false if it is none.
func (f *follower) addressMade(l flow.Location, n int) (made flow.Definition, ok bool) {
	found := recall(&f.memo.made, f.pointerWay(l, n), stepOf, func(d flow.Definition) (madeAt, bool) { return madeAt{d, true}, f.makesAddress(d) })
	return found.d, found.ok
}

// makesAddress reports whether a definition is that of an address in a frame.
func (f *addresses) makesAddress(d flow.Definition) bool {
	return ofStackPointer(d) || d.Kind == flow.Computed && d.Part.Size == 8 && makesAddress(f.trace.Step(d.At).Inst)
}

// storesSince are the stores of a pointer since its address was made, the latest first.
func (f *addresses) storesSince(l flow.Location, n int) (way []int) {
	for d := range f.pointerWay(l, n) {
		if f.makesAddress(d) {
			break
		}
		if d.Kind == flow.Copied && d.Part.Space == transfer.Memory {
			way = append(way, d.At)
		}
	}
	return way
}

// returnFrom is the first step at which a function returned whose frame an address is in, of those between the step that made the
// address and its use, by the thread that made it; -1: there is none.
func (f *steps) returnFrom(made, used int, addr evidence.Addr) int {
	return f.trace.FirstReturn(f.trace.Step(made).Thread, made, used, max(uint64(addr)+1, f.trace.Register(made, x86.RSP)), uint64(addr)+mostStack)
}

// handedOut is the step at which the function put the address into memory that is not its own, or else the one that made it.
func (f *steps) handedOut(made, returned int, way []int) int {
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

// calledFrom is the step in the function that made an address from which the code of step n was called; or n, which is in that function.
func (f *steps) calledFrom(made, n int) int {
	frame := f.trace.Register(made, x86.RSP)
	for at := n; at > made && f.trace.Step(n).Thread == f.trace.Step(made).Thread; at = f.trace.Previous(at) {
		if f.trace.Register(at, x86.RSP) >= frame {
			return at
		}
	}
	return n
}
