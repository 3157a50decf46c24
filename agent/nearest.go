package agent

import "diagnose/evidence"

// Where says where an address lies, seen from an object.
type Where uint8

// The places.
const (
	// Inside the object's own bytes.
	Inside Where = iota
	// Behind its end, in the rest of its slot.
	Behind
	// Before it, in the guard or canary before it, or in the canary of the
	// object before it.
	Before
	// InGuardPage is behind a large object, where no access succeeds.
	InGuardPage
	// InFresh is behind its slot, in memory never handed out.
	InFresh
)

// Near places an address beside an object.
type Near struct {
	Object Object
	Where  Where
	// Distance is the offset in the object for Inside, else how many bytes lie
	// between: 0 is the byte directly behind the end, or directly before the start.
	Distance uint64
}

// Nearest names an address by the object in, behind or before which it lies.
// found is false when no object is near.
func (h *Heap) Nearest(addr evidence.Addr) (n Near, found bool, err error) {
	o, found, err := h.Lookup(addr)
	if !found || err != nil {
		return Near{}, false, err
	}
	if o.Contains(addr) {
		return Near{Object: o, Where: Inside, Distance: uint64(addr - o.Addr)}, true, nil
	}
	return Near{Object: o, Where: Behind, Distance: uint64(addr - o.End())}, true, nil
}
