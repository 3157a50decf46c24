package agent

import "diagnose/evidence"

// Lookup returns what the slot that contains addr holds: an object, live or
// freed, or a fresh slot. found is false when addr is in no slot.
func (h *Heap) Lookup(addr evidence.Addr) (o Object, found bool, err error) {
	return h.spans.lookup(addr)
}

// FillWord returns the freed object that a word names which was read from its
// fill, and the offset that was added to the word, as of a member reached
// through it. found is false when the word is no fill word. The object may have
// been handed out again since.
func (h *Heap) FillWord(value uint64) (o Object, offset int64, found bool, err error) {
	if value>>48 != FillTag {
		return Object{}, 0, false, nil
	}
	addr := evidence.Addr(h.root.Objects.Start + value>>12&(1<<36-1)<<4)
	o, found, err = h.Lookup(addr)
	if !found || err != nil || o.State == Fresh {
		return Object{}, 0, false, err
	}
	// An offset that leaves its 4 KiB counts on into the numbers of the 16
	// bytes that follow, which belong to the same slot.
	return o, int64(value - FillWord(h.root.Objects.Start, uint64(o.Addr))), true, nil
}
