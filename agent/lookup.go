package agent

import (
	"fmt"

	"diagnose/evidence"
)

// spanAt returns the span whose units hold the address; nil if none does.
func (h *Heap) spanAt(addr evidence.Addr) (*Span, error) {
	if !h.InObjects(addr) {
		return nil, nil
	}
	return h.spanOf((uint64(addr) - h.root.Objects.Start) >> UnitShift)
}

// spanOf returns the span that a unit belongs to; nil if there is none.
func (h *Heap) spanOf(unit uint64) (*Span, error) {
	if unit >= h.root.Spans.Used {
		return nil, nil
	}
	raw, err := h.rawSpan(unit)
	if err != nil {
		return nil, err
	}
	head := unit
	if raw.Kind == SpanInterior {
		back := uint64(raw.Units)
		if back == 0 || back > unit {
			return nil, fmt.Errorf("agent: unit %d claims to be %d units after its span's first", unit, back)
		}
		head -= back
		if raw, err = h.rawSpan(head); err != nil {
			return nil, err
		}
	}
	// What a span left in its units stays when it goes back to the pool.
	if raw.Kind == SpanNone || raw.Kind == SpanInterior || head+uint64(raw.Units) <= unit {
		return nil, nil
	}
	return h.span(head, raw)
}

func (h *Heap) rawSpan(unit uint64) (RawSpan, error) {
	var p [spanSize]byte
	if err := h.read("record of a span", h.root.Spans.Start+unit*spanSize, p[:]); err != nil {
		return RawSpan{}, err
	}
	return decodeSpan(p[:]), nil
}

func (h *Heap) objectAt(s *Span, slot int) (Object, error) {
	var word [1]uint64
	var raw [8]byte
	if err := h.words(new(patience), s, slot, word[:], raw[:]); err != nil {
		return Object{}, err
	}
	return s.object(slot, word[0]), nil
}

// Lookup returns what the slot holds in which addr lies: an object, live or
// freed, or a fresh slot. found is false when addr is in no slot.
func (h *Heap) Lookup(addr evidence.Addr) (o Object, found bool, err error) {
	s, err := h.spanAt(addr)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	slot, ok := s.slotOf(addr)
	if !ok {
		return Object{}, false, nil
	}
	o, err = h.objectAt(s, slot)
	return o, err == nil, err
}

// Following returns the object in the slot after o's; for the last slot of a
// span, the one in the first slot of a span that begins where this one ends.
// found is false when there is none, or nothing was ever allocated there.
func (h *Heap) Following(o *Object) (next Object, found bool, err error) {
	s, err := h.spanAt(o.Slot)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	if slot, ok := s.slotOf(o.Slot); ok && slot+1 < s.Slots() {
		next, err = h.objectAt(s, slot+1)
	} else if s, err = h.spanAt(s.End); s != nil && err == nil && s.Index<<UnitShift == uint64(s.Start)-h.root.Objects.Start {
		next, err = h.objectAt(s, 0)
	}
	return next, err == nil && next.State != Fresh, err
}

// Preceding returns the object in the slot before o's; for the first slot of a
// span, the last one that was handed out of the span that ends there.
func (h *Heap) Preceding(o *Object) (before Object, found bool, err error) {
	s, err := h.spanAt(o.Slot)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	if slot, ok := s.slotOf(o.Slot); ok && slot > 0 {
		before, err = h.objectAt(s, slot-1)
		return before, err == nil && before.State != Fresh, err
	}
	if s, err = h.spanAt(s.Start - 1); s == nil || err != nil {
		return Object{}, false, err
	}
	return h.lastIn(s, s.Slots()-1)
}

// maxFresh bounds the search for an object in front of fresh slots.
const maxFresh = 4096

// lastIn returns the last object at or before a slot that is not fresh.
func (h *Heap) lastIn(s *Span, slot int) (o Object, found bool, err error) {
	last := min(slot, s.Carved()-1)
	if last < 0 {
		return Object{}, false, nil
	}
	first := max(0, last+1-maxFresh)
	words, raw := make([]uint64, last+1-first), make([]byte, 8*(last+1-first))
	if err := h.words(new(patience), s, first, words, raw); err != nil {
		return Object{}, false, err
	}
	for i := len(words) - 1; i >= 0; i-- {
		if s.state(words[i]) != Fresh {
			return s.object(first+i, words[i]), true, nil
		}
	}
	return Object{}, false, nil
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
