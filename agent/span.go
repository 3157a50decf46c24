package agent

import (
	"encoding/binary"

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

// Freed reports whether the span has a large object that was freed and is
// still filled.
func (s *Span) Freed() bool { return s.raw.Kind == SpanFreed }

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

// Carved is how many slots may have been handed out; the others never were.
func (s *Span) Carved() int {
	if s.Large() {
		return 1
	}
	return int(s.raw.Carved)
}

// slotOf returns the slot that holds addr; false before the
// first one, after the last one, and in the guard page.
func (s *Span) slotOf(addr evidence.Addr) (int, bool) {
	if addr < s.FirstSlot() || s.SlotSize() == 0 {
		return 0, false
	}
	i := uint64(addr-s.FirstSlot()) / s.SlotSize()
	return int(i), i < uint64(s.Slots())
}

// object is what slot i holds, whose word is given.
func (s *Span) object(i int, word uint64) Object {
	o := Object{
		Size: word & SizeMask, State: s.state(word), API: API(word >> WordAPI & 3),
		Reported: word>>WordReported&1 != 0, Allocated: callOf(word),
	}
	if s.Large() {
		o.Large, o.Guarded = true, s.raw.Flags&SpanGuarded != 0
		o.Addr, o.Size = evidence.Addr(s.raw.Object), s.raw.Size
		o.Slot, o.SlotEnd = s.Start, evidence.Addr(s.raw.End)
		if s.Freed() {
			o.Freed = Call{Site: s.raw.FreeSite, Thread: s.raw.FreeThread}
		}
		return o
	}
	o.Slot = s.FirstSlot() + evidence.Addr(uint64(i)*s.SlotSize())
	o.SlotEnd = o.Slot + evidence.Addr(s.SlotSize())
	o.Addr = o.Slot
	return o
}

// state is that of a slot with such a word. A large object's kind of span says
// more than its word, which is written before.
func (s *Span) state(word uint64) State {
	state := State(word >> WordState & 3)
	if s.Freed() && state != Reusable {
		return Quarantined
	}
	return state
}

func callOf(word uint64) Call {
	return Call{Site: uint32(word >> WordSite & SiteMask), Thread: uint32(word >> WordThread & ThreadMask)}
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
