package agent

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// spanAt returns the span that holds the address; nil if none does.
func (h *Heap) spanAt(addr evidence.Addr) (*Span, error) {
	if !h.InObjects(addr) {
		return nil, nil
	}
	return h.spanOfUnit((uint64(addr) - h.root.Objects.Start) >> UnitShift)
}

func (h *Heap) spanOfUnit(unit uint64) (*Span, error) {
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
			return nil, fmt.Errorf("agent: unit %d claims to be %d units behind its span", unit, back)
		}
		head -= back
		if raw, err = h.rawSpan(head); err != nil {
			return nil, err
		}
	}
	if raw.Kind == SpanNone {
		return nil, nil
	}
	s, err := h.span(head, raw)
	if err != nil {
		return nil, err
	}
	if head+uint64(raw.Units) <= unit {
		return nil, fmt.Errorf("agent: unit %d is not within its span of %d units at unit %d", unit, raw.Units, head)
	}
	return s, nil
}

func (h *Heap) rawSpan(unit uint64) (RawSpan, error) {
	var p [spanSize]byte
	if err := h.read(fmt.Sprintf("span %d", unit), h.root.Spans.Start+unit*spanSize, p[:]); err != nil {
		return RawSpan{}, err
	}
	return decodeSpan(p[:]), nil
}

// words reads the words of slots [first, first+len(words)).
func (h *Heap) words(s *Span, first int, words []uint64) error {
	p := make([]byte, 8*len(words))
	if err := h.read(fmt.Sprintf("words of span %d", s.Index), s.raw.Words+8*uint64(first), p); err != nil {
		return err
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	return nil
}

func (h *Heap) objectAt(s *Span, slot int) (Object, error) {
	var word [1]uint64
	if err := h.words(s, slot, word[:]); err != nil {
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

// slotOf returns the slot that holds addr; false for what lies before the
// first, behind the last, and for the guard page.
func (s *Span) slotOf(addr evidence.Addr) (int, bool) {
	if addr < s.FirstSlot() || s.SlotSize() == 0 {
		return 0, false
	}
	i := uint64(addr-s.FirstSlot()) / s.SlotSize()
	return int(i), i < uint64(s.Slots())
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
