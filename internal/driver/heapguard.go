package driver

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/failure"
)

// guardWord is the agent's canary in the place of a pointer: the program read it
// from where an object has ended.
type guardWord struct {
	pointer pointer
	// offset is what was added to the word.
	offset int64
}

// memberRange bounds what is taken for a member's offset.
const memberRange = 4096

// readFromGuard recognises a pointer that was read from the canary beside an
// object. A pattern that repeats one byte may be the program's own.
func (a *analysis) readFromGuard(pointers []pointer) bool {
	word := a.heap.CanaryWord()
	if word == uint64(byte(word))*0x0101010101010101 {
		return false
	}
	for _, p := range pointers {
		offset := int64(uint64(p.addr) - word)
		if offset <= -memberRange || offset >= memberRange {
			continue
		}
		f := &a.result.Failure
		f.Kind, f.Proof = evidence.HeapOverflow, evidence.Inferred
		a.guarded = &guardWord{p, offset}
		f.Fault.Place.Text = "not canonical: the agent's canary, which lies beside objects" + added(int64(f.Fault.Addr-p.addr)+offset)
		a.heapWords = &failure.HeapWords{What: "heap overflow", Why: fmt.Sprintf(
			"%v was read from beside an object, where the agent's canary lies%s", p.addr, added(offset))}
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
