package agent

import "diagnose/evidence"

// Where says where an address lies, seen from an object.
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

// maxUnitsBack bounds the search for a span before an address that is in none.
const maxUnitsBack = 64

// Nearest names an address by the object in, after or before which it is;
// the one after which it is if both are as near. found is false when
// nothing was ever allocated near it.
func (h *Heap) Nearest(addr evidence.Addr) (n Near, found bool, err error) {
	if !h.InObjects(addr) {
		return Near{}, false, nil
	}
	s, err := h.spanAt(addr)
	if err != nil {
		return Near{}, false, err
	}
	if s == nil {
		return h.outside(addr)
	}
	slot, ok := s.slotOf(addr)
	switch {
	case s.Large():
		return h.nearLarge(s, addr)
	case !ok && addr < s.FirstSlot():
		return h.inFrontGuard(s, addr)
	case !ok:
		return h.placeAfter(s, s.Slots()-1, addr)
	}
	o, err := h.objectAt(s, slot)
	switch {
	case err != nil:
		return Near{}, false, err
	case o.State == Fresh:
		return h.placeAfter(s, slot, addr)
	case o.Contains(addr):
		return Near{o, Inside, uint64(addr - o.Addr)}, true, nil
	}
	return h.nearer(beside(o, Behind, addr), addr)
}

func (h *Heap) nearLarge(s *Span, addr evidence.Addr) (Near, bool, error) {
	o, err := h.objectAt(s, 0)
	switch {
	case err != nil:
		return Near{}, false, err
	case addr < o.Addr:
		return beside(o, Before, addr), true, nil
	case addr < o.End():
		return Near{o, Inside, uint64(addr - o.Addr)}, true, nil
	case addr >= o.SlotEnd && o.Guarded:
		return beside(o, InGuardPage, addr), true, nil
	}
	return beside(o, Behind, addr), true, nil
}

// nearer decides between the object after which an address is and the one
// in the next slot.
func (h *Heap) nearer(n Near, addr evidence.Addr) (Near, bool, error) {
	next, found, err := h.Following(&n.Object)
	if err != nil {
		return Near{}, false, err
	}
	if found && next.Addr > addr && uint64(next.Addr-addr)-1 < n.Distance {
		return beside(next, Before, addr), true, nil
	}
	return n, true, nil
}

// inFrontGuard places an address before the first slot of a span of small
// objects.
func (h *Heap) inFrontGuard(s *Span, addr evidence.Addr) (Near, bool, error) {
	o, err := h.objectAt(s, 0)
	if err != nil {
		return Near{}, false, err
	}
	before, found, err := h.Preceding(&o)
	if err != nil {
		return Near{}, false, err
	}
	if found && (o.State == Fresh || uint64(addr-before.End()) <= uint64(o.Addr-addr)-1) {
		return beside(before, Behind, addr), true, nil
	}
	return beside(o, Before, addr), o.State != Fresh, nil
}

// placeAfter places an address in a fresh slot, or after the last slot, by the
// last object before.
func (h *Heap) placeAfter(s *Span, slot int, addr evidence.Addr) (Near, bool, error) {
	o, found, err := h.lastIn(s, slot)
	if !found || err != nil {
		return Near{}, false, err
	}
	where := Behind
	if last := s.FirstSlot() + evidence.Addr(uint64(s.Slots())*s.SlotSize()); addr < last {
		where = InFresh
	}
	return beside(o, where, addr), true, nil
}

// outside places an address that is in no span by the last object of the span
// before it.
func (h *Heap) outside(addr evidence.Addr) (Near, bool, error) {
	unit := (uint64(addr) - h.root.Objects.Start) >> UnitShift
	for back := range uint64(maxUnitsBack) {
		if back >= unit {
			break
		}
		s, err := h.spanOf(unit - back - 1)
		if err != nil {
			return Near{}, false, err
		}
		if s == nil {
			continue
		}
		o, found, err := h.lastIn(s, s.Slots()-1)
		if !found || err != nil {
			return Near{}, false, err
		}
		return beside(o, Behind, addr), true, nil
	}
	return Near{}, false, nil
}
