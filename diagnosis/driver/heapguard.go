package driver

import (
	"fmt"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

// guardWord is the agent's canary in the place of a pointer: the program read it
// from where an object has ended.
type guardWord struct {
	pointer pointer
	// object is the one whose guard the word is.
	object agent.Object
	// offset is what was added to the word.
	offset int64
}

// readFromGuard recognises a pointer that was read from the canary beside an
// object. Each slot has a guard of its own, so the word names the object.
func (a *analysis) readFromGuard(pointers []pointer) bool {
	for _, p := range pointers {
		o, offset, found, gaps := a.heap.GuardWord(uint64(p.addr))
		if gaps.Count > 0 {
			a.limit(evidence.Limit{Text: fmt.Sprintf("the guards of the heap were not all compared with the pointer: %v", gaps.First[0])})
		}
		if !found {
			continue
		}
		if err := a.heap.findFrees(&o); err != nil {
			a.limit(evidence.Limit{Text: err.Error()})
		}
		f := &a.result.Failure
		f.Kind, f.Proof = evidence.HeapOverflow, evidence.Inferred
		a.guarded = &guardWord{p, o, offset}
		f.Fault.Place.Text = "not canonical: the agent's canary, which lies beside objects" + added(int64(f.Fault.Addr-p.addr)+offset)
		a.heapWords = &failure.HeapWords{What: "heap overflow", Why: joined(fmt.Sprintf(
			"%v is the agent's guard of %s at %v%s", p.addr, sized(&o), o.Addr, added(offset)), lifeWords(a.heap.object(&o)))}
		a.resay()
		return true
	}
	return false
}

// why says where the canary was read, by the memory that still holds it.
func (w *guardWord) why(h *agentHeap, name string, cell evidence.Addr, o *agent.Object) string {
	if name == "" {
		name = fmt.Sprintf("%v", w.pointer.addr)
	}
	return joined(fmt.Sprintf("%s was read from the agent's canary, %s", name, offsetWords(cell, o)), lifeWords(h.object(o)))
}
