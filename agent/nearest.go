package agent

import "diagnose/evidence"

// Where is the position of an address relative to an object.
type Where uint8

// The places.
const (
	// Inside the object's own bytes.
	Inside Where = iota
	// After its end: in the rest of its slot, or in the bytes after the slot
	// and belongs to no other object.
	Behind
	// Before its start: in the canary before it, or in that of the object
	// before, and nearer to this one.
	Before
	// InGuardPage is after a large object, where no access succeeds.
	InGuardPage
	// InFresh is after its slot, in slots never handed out.
	InFresh
)

// Near places an address beside an object.
type Near struct {
	Object Object
	Where  Where
	// Distance is the offset in the object for Inside, else how many bytes lie
	// between: 0 is the byte directly after the end, or directly before the start.
	Distance uint64
}

// beside places an address that is not inside the object.
func beside(o Object, where Where, addr evidence.Addr) Near {
	if where == Before {
		return Near{o, where, uint64(o.Addr-addr) - 1}
	}
	return Near{o, where, uint64(addr - o.End())}
}

// Following returns the object in the slot after o's; for the last slot of a
// span, the one in the first slot of a span that begins where this one ends.
// found is false when there is none, or nothing was ever allocated there.
func (h *Heap) Following(o *Object) (next Object, found bool, err error) {
	return neighbours{h.spans}.following(o)
}

// Preceding returns the object in the slot before o's; for the first slot of a
// span, the last one that was handed out of the span that ends there.
func (h *Heap) Preceding(o *Object) (before Object, found bool, err error) {
	return neighbours{h.spans}.preceding(o)
}

// Nearest names an address by the object in, after or before which it is;
// the one after which it is if both are as near. found is false when
// nothing was ever allocated near it.
func (h *Heap) Nearest(addr evidence.Addr) (n Near, found bool, err error) {
	return neighbours{h.spans}.nearest(addr)
}
