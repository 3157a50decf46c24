package heapjudge

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// guardWord is a canary of the agent that the program read as a pointer, from
// past the end of an object.
type guardWord struct {
	pointer pointer
	// object is the object whose guard the word is.
	object agent.Object
	// offset is the number that was added to the word.
	offset int64
}

// readFromGuard recognises a pointer that was read from the canary next to an
// object. Each slot has a guard of its own, so the word names the object.
func (x *Explanation) readFromGuard(pointers []pointer) bool {
	for _, p := range pointers {
		o, offset, found, gaps := x.heap.GuardWord(uint64(p.addr))
		if gaps.Count > 0 {
			x.limit(evidence.Limit{Code: evidence.LimitHeapUnread, Reason: fmt.Sprintf("the guards of the heap were not all compared with the pointer: %v", gaps.First[0])}.Worded())
		}
		if !found {
			continue
		}
		if err := x.heap.findFrees(&o); err != nil {
			x.limit(evidence.Limit{Code: evidence.LimitHeapUnread, Reason: err.Error()}.Worded())
		}
		f := x.failure
		f.Kind, f.Proof = evidence.HeapOverflow, evidence.Inferred
		x.guarded = &guardWord{p, o, offset}
		f.Fault.Place.Text = evidence.Say("not canonical: the agent's canary, which lies beside objects" + added(int64(f.Fault.Addr-p.addr)+offset))
		x.Words = &Words{What: "heap overflow", Why: joined(fmt.Sprintf(
			"%v is the agent's guard of %s at %v%s", p.addr, sized(&o), o.Addr, added(offset)), lifeWords(x.heap.Object(&o)))}
		return true
	}
	return false
}

// why says where the canary was read, from the memory that still holds it.
func (w *guardWord) why(h *Heap, name string, cell evidence.Addr, o *agent.Object) string {
	if name == "" {
		name = fmt.Sprintf("%v", w.pointer.addr)
	}
	return joined(fmt.Sprintf("%s was read from the agent's canary, %s", name, offsetWords(cell, o)), lifeWords(h.Object(o)))
}
