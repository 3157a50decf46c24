package agent

import "diagnose/evidence"

// StateWord is memory of the agent that says whether a slot holds an object: of a small slot its word, of a large one the kind of
// its span. Each time that the slot is handed out and given back, the agent writes it.
type StateWord struct {
	Addr  evidence.Addr
	Size  int // in bytes
	large bool
}

// StateWord returns the word of the slot that contains addr; found is false when addr is in no slot.
func (h *Heap) StateWord(addr evidence.Addr) (w StateWord, found bool, err error) {
	s, err := h.spans.spanAt(addr)
	if s == nil || err != nil {
		return StateWord{}, false, err
	}
	slot, found := s.slotOf(addr)
	switch {
	case !found:
		return StateWord{}, false, nil
	case s.Large():
		return StateWord{Addr: evidence.Addr(h.root.Spans.Start + s.Index*spanSize), Size: 1, large: true}, true, nil
	}
	return StateWord{Addr: evidence.Addr(s.raw.Words + 8*uint64(slot)), Size: 8}, true, nil
}

// Live reports whether the slot holds an object of the program when the word has this value.
func (w StateWord) Live(value uint64) bool {
	if w.large {
		return value&0xff == SpanLarge
	}
	return State(value>>WordState&3) == Live
}
