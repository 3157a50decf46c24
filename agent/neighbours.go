package agent

import "diagnose/evidence"

// neighbours finds the objects around an object or an address.
type neighbours struct{ spans *spanTable }

// following: see Heap.Following.
func (n neighbours) following(o *Object) (next Object, found bool, err error) {
	s, err := n.spans.spanAt(o.Slot)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	if slot, ok := s.slotOf(o.Slot); ok && slot+1 < s.Slots() {
		next, err = n.spans.objectAt(s, slot+1)
	} else if s, err = n.spans.spanAt(s.End); s != nil && err == nil && s.Index<<UnitShift == uint64(s.Start)-n.spans.root.Objects.Start {
		next, err = n.spans.objectAt(s, 0)
	}
	return next, err == nil && next.State != Fresh, err
}

// preceding: see Heap.Preceding.
func (n neighbours) preceding(o *Object) (before Object, found bool, err error) {
	s, err := n.spans.spanAt(o.Slot)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	if slot, ok := s.slotOf(o.Slot); ok && slot > 0 {
		before, err = n.spans.objectAt(s, slot-1)
		return before, err == nil && before.State != Fresh, err
	}
	if s, err = n.spans.spanAt(s.Start - 1); s == nil || err != nil {
		return Object{}, false, err
	}
	return n.lastIn(s, s.Slots()-1)
}

// maxFresh bounds the search for an object in front of fresh slots.
const maxFresh = 4096

// lastIn returns the last object at or before a slot that is not fresh.
func (n neighbours) lastIn(s *Span, slot int) (o Object, found bool, err error) {
	last := min(slot, s.Carved()-1)
	if last < 0 {
		return Object{}, false, nil
	}
	first := max(0, last+1-maxFresh)
	words, raw := make([]uint64, last+1-first), make([]byte, 8*(last+1-first))
	if err := n.spans.words(new(patience), s, first, words, raw); err != nil {
		return Object{}, false, err
	}
	for i := len(words) - 1; i >= 0; i-- {
		if s.state(words[i]) != Fresh {
			return s.object(first+i, words[i]), true, nil
		}
	}
	return Object{}, false, nil
}

// maxUnitsBack bounds the search for a span before an address that is in none.
const maxUnitsBack = 64

// nearest: see Heap.Nearest.
func (n neighbours) nearest(addr evidence.Addr) (near Near, found bool, err error) {
	if !n.spans.root.inObjects(addr) {
		return Near{}, false, nil
	}
	s, err := n.spans.spanAt(addr)
	if err != nil {
		return Near{}, false, err
	}
	if s == nil {
		return n.outside(addr)
	}
	slot, ok := s.slotOf(addr)
	switch {
	case s.Large():
		return n.nearLarge(s, addr)
	case !ok && addr < s.FirstSlot():
		return n.inFrontGuard(s, addr)
	case !ok:
		return n.placeAfter(s, s.Slots()-1, addr)
	}
	o, err := n.spans.objectAt(s, slot)
	switch {
	case err != nil:
		return Near{}, false, err
	case o.State == Fresh:
		return n.placeAfter(s, slot, addr)
	case o.Contains(addr):
		return Near{o, Inside, uint64(addr - o.Addr)}, true, nil
	}
	return n.nearer(beside(o, Behind, addr), addr)
}

func (n neighbours) nearLarge(s *Span, addr evidence.Addr) (Near, bool, error) {
	o, err := n.spans.objectAt(s, 0)
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
func (n neighbours) nearer(near Near, addr evidence.Addr) (Near, bool, error) {
	next, found, err := n.following(&near.Object)
	if err != nil {
		return Near{}, false, err
	}
	if found && next.Addr > addr && uint64(next.Addr-addr)-1 < near.Distance {
		return beside(next, Before, addr), true, nil
	}
	return near, true, nil
}

// inFrontGuard places an address before the first slot of a span of small
// objects.
func (n neighbours) inFrontGuard(s *Span, addr evidence.Addr) (Near, bool, error) {
	o, err := n.spans.objectAt(s, 0)
	if err != nil {
		return Near{}, false, err
	}
	before, found, err := n.preceding(&o)
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
func (n neighbours) placeAfter(s *Span, slot int, addr evidence.Addr) (Near, bool, error) {
	o, found, err := n.lastIn(s, slot)
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
func (n neighbours) outside(addr evidence.Addr) (Near, bool, error) {
	unit := n.spans.root.unitOf(addr)
	for back := range uint64(maxUnitsBack) {
		if back >= unit {
			break
		}
		s, err := n.spans.spanOf(unit - back - 1)
		if err != nil {
			return Near{}, false, err
		}
		if s == nil {
			continue
		}
		o, found, err := n.lastIn(s, s.Slots()-1)
		if !found || err != nil {
			return Near{}, false, err
		}
		return beside(o, Behind, addr), true, nil
	}
	return Near{}, false, nil
}
