package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// Shared is the store that put the address of an object in a second place. What is done to the object through one of the places is not
// known at the other.
type Shared struct {
	// PC is the store.
	PC evidence.Addr
	// Freed: the object was freed through the second place; else it was used through it after that.
	Freed bool
}

// sharing finds what shared an object.
type sharing struct {
	placeSearch
	frames *frames
}

// SharedBy is how the object at an address is used after it had been freed through another place than the one that has its address; nil:
// through the same one, or it is not known. The use is the thread's last call, if that is handed the address, as that of a function which
// frees again, or the first access.
func SharedBy(t *flow.Trace, p Program, addr evidence.Addr, thread uint32) *Shared {
	o := t.ObjectAt(addr, t.Len())
	if o == nil || o.Freed < 0 {
		return nil
	}
	s := sharing{placeSearch{newFollower(t, p)}, newFrames(t, p)}
	used, n := s.use(o, thread)
	if n < 0 {
		return nil
	}
	freed, fromHeap := s.of(flow.Register(t.Step(o.Freed).Thread, x86.RDI, 8), o.Freed)
	user, alsoFromHeap := s.of(used, n)
	all := len(freed)
	for len(freed) > 0 && len(user) > 0 && freed[len(freed)-1].sameAs(user[len(user)-1]) {
		freed, user = freed[:len(freed)-1], user[:len(user)-1]
	}
	if len(freed) == all && !(fromHeap && alsoFromHeap) {
		return nil // where one of them came from is not known
	}
	// The places that are left are those that the address was copied to after it had been in the last one that both have.
	second, isFreed := slices.DeleteFunc(user, s.local), false
	if len(second) == 0 {
		second, isFreed = slices.DeleteFunc(freed, s.local), true
	}
	if len(second) == 0 {
		return nil
	}
	return &Shared{PC: s.ownPlace(second[len(second)-1].stored), Freed: isFreed}
}

func (p place) sameAs(q place) bool { return p.l == q.l && p.stored == q.stored }

// local reports whether a place is a variable that one call of a function stores and loads.
func (s sharing) local(p place) bool {
	return s.trace.OnStack(p.l.Addr) && s.call(p.stored) == s.call(p.loaded)
}

// use is the storage that had the address, or one derived from it, when a freed object was used, and the step.
func (s sharing) use(o *flow.Object, thread uint32) (l flow.Location, n int) {
	if last := s.trace.Last(thread); last >= 0 {
		if at := s.ownCall(last); at > o.Freed && evidence.Addr(s.trace.Register(at, x86.RDI)) == o.Addr {
			return flow.Register(thread, x86.RDI, 8), at
		}
	}
	for n := o.Freed + 1; n < s.trace.Len(); n++ {
		step := s.trace.Step(n)
		if step.Inst == nil {
			continue
		}
		for k := range step.Inst.Operands {
			x := &step.Inst.Operands[k]
			if !accessesMemory(x) {
				continue
			}
			at, known := s.trace.Extent(n, k)
			if !known || at.Addr < o.Addr || at.Addr >= o.Addr+evidence.Addr(o.Size) {
				continue
			}
			for _, l := range s.pointers(n, k) {
				if s.derived(l, n) == o {
					return l, n
				}
			}
		}
	}
	return l, none
}

// call is the step that called the function which a step is in.
func (s sharing) call(n int) int {
	if s.trace.Step(n).Library {
		n = s.trace.Previous(n)
	}
	if n < 0 {
		return none
	}
	return s.frames.call[n]
}
