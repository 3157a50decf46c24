package agent

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// Span is a run of units with objects of one class, or with one large object.
type Span struct {
	// Index is the number of its first unit.
	Index uint64
	// Start and End bound its units; a guard page is within.
	Start, End evidence.Addr
	raw        RawSpan
}

// Large reports whether the span has one large object.
func (s *Span) Large() bool { return s.raw.Kind == SpanLarge || s.raw.Kind == SpanFreed }

// Slots is how many slots it has.
func (s *Span) Slots() int {
	if s.Large() {
		return 1
	}
	return int(s.raw.Slots)
}

// SlotSize is the bytes of a slot.
func (s *Span) SlotSize() uint64 {
	if s.Large() {
		return s.raw.End - uint64(s.Start)
	}
	return uint64(s.raw.Slot)
}

// FirstSlot is where slot 0 is. The bytes from Start up to it are canary.
func (s *Span) FirstSlot() evidence.Addr {
	if s.Large() {
		return s.Start
	}
	return s.Start + evidence.Addr(s.raw.First)
}

// Carved is how many slots were handed out at least once.
func (s *Span) Carved() int {
	if s.Large() {
		return 1
	}
	return int(s.raw.Carved)
}

// object is what slot i holds, whose word is given.
func (s *Span) object(i int, word uint64) Object {
	o := objectOf(word)
	if s.Large() {
		o.Large = true
		o.Addr, o.Size = evidence.Addr(s.raw.Object), s.raw.Size
		o.Slot, o.SlotEnd = s.Start, evidence.Addr(s.raw.End)
		o.Guarded = s.raw.Flags&SpanGuarded != 0
		if s.raw.Kind == SpanFreed {
			o.Freed = Call{Site: s.raw.FreeSite, Thread: s.raw.FreeThread}
		}
		return o
	}
	o.Slot = s.FirstSlot() + evidence.Addr(uint64(i)*s.SlotSize())
	o.SlotEnd = o.Slot + evidence.Addr(s.SlotSize())
	o.Addr = o.Slot
	return o
}

func decodeSpan(p []byte) RawSpan {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(p[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(p[at:]) }
	return RawSpan{
		Kind: p[0], Class: p[1], Flags: binary.LittleEndian.Uint16(p[2:]),
		Units: u32(4), Slot: u32(8), First: u32(12), Slots: u32(16), Carved: u32(20), Heap: u32(24), Central: u32(28),
		Magic: u64(32), Words: u64(40), Bitmap: u64(48), Object: u64(56), Size: u64(64), End: u64(72), Next: u64(80), Prev: u64(88),
		FreeSite: u32(96), FreeThread: u32(100), Reserved: [3]uint64{u64(104), u64(112), u64(120)},
	}
}

// span checks what is recorded at a unit that should begin a span.
func (h *Heap) span(index uint64, raw RawSpan) (*Span, error) {
	start := h.root.Objects.Start + index<<UnitShift
	s := &Span{Index: index, Start: evidence.Addr(start), End: evidence.Addr(start + uint64(raw.Units)<<UnitShift), raw: raw}
	if err := h.plausible(s); err != nil {
		return nil, fmt.Errorf("agent: span %d at %#x: %w", index, start, err)
	}
	return s, nil
}

func (h *Heap) plausible(s *Span) error {
	raw := &s.raw
	if raw.Units == 0 || s.Index+uint64(raw.Units) > h.root.Spans.Used {
		return fmt.Errorf("implausible length of %d units", raw.Units)
	}
	length := uint64(raw.Units) << UnitShift
	words := uint64(1)
	switch raw.Kind {
	case SpanSmall:
		words = uint64(raw.Slots)
		if raw.Slot < 16 || raw.Slot > SmallMax || raw.Slot%16 != 0 || raw.First > LargeCanary || raw.First < MinCanary ||
			uint64(raw.First)+words*uint64(raw.Slot) > length || raw.Carved > raw.Slots {
			return fmt.Errorf("%d of %d slots of %d bytes behind %d bytes do not fit %#x bytes", raw.Carved, raw.Slots, raw.Slot, raw.First, length)
		}
	case SpanLarge, SpanFreed:
		start, end := uint64(s.Start), uint64(s.End)
		if raw.End > end || raw.Object < start || raw.Object > raw.End || raw.Size > raw.End-raw.Object {
			return fmt.Errorf("a large object of %d bytes at %#x does not fit up to %#x", raw.Size, raw.Object, raw.End)
		}
	default:
		return fmt.Errorf("unknown kind %d", raw.Kind)
	}
	if !h.inMeta(raw.Words, 8*words) {
		return fmt.Errorf("%d words at %#x are outside the metadata", words, raw.Words)
	}
	return nil
}

// inMeta reports whether a range lies in the mapped metadata.
func (h *Heap) inMeta(addr, size uint64) bool {
	m := &h.root.Meta
	return addr >= m.Start && addr%8 == 0 && size <= m.Mapped && addr-m.Start <= m.Mapped-size
}
