package agent

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// Range is the memory from Start up to End.
type Range struct {
	Start, End evidence.Addr
}

// Len is how many bytes the range has.
func (r Range) Len() uint64 { return uint64(r.End - r.Start) }

// Guard is the canary before the first slot of a span of small objects.
func (s *Span) Guard() Range { return Range{s.Start, s.FirstSlot()} }

// Guards returns the canaries around an object, empty where it has none. Only
// a live object has one of its own after it; a small one has one before it
// only in the first slot of a span.
func (h *Heap) Guards(o *Object) (before, behind Range, err error) {
	if o.Large {
		before, behind = o.largeGuards()
		return before, behind, nil
	}
	s, err := h.spans.spanAt(o.Slot)
	if err != nil {
		return before, behind, err
	}
	if s != nil && !s.Large() && o.Slot == s.FirstSlot() {
		before = s.Guard()
	}
	return before, o.Canary(), nil
}

// Canary is the canary after a live object; empty if its size leaves no room
// for one, which no agent writes.
func (o *Object) Canary() Range {
	if o.State != Live || o.Size > uint64(o.SlotEnd-o.Addr) {
		return Range{}
	}
	longest := evidence.Addr(MaxCanary)
	if o.Large {
		longest = LargeCanary
	}
	return Range{o.End(), min(o.SlotEnd, (o.End()+7)&^7+longest)}
}

func (o *Object) largeGuards() (before, behind Range) {
	if o.State != Live {
		return before, behind
	}
	before = Range{o.Slot, o.Addr}
	if before.Len() > LargeCanary {
		before.Start = o.Addr - LargeCanary
	}
	return before, o.Canary()
}

// Fill is the part of a freed object, and of its slot, that is filled.
func (h *Heap) Fill(o *Object) Range {
	if o.State == Fresh || o.State == Live {
		return Range{}
	}
	n := uint64(h.root.Options.FillBytes)
	if o.Large {
		n = Filled(o.Size, n)
	}
	return Range{o.Addr, o.Addr + evidence.Addr(min(n, uint64(o.SlotEnd-o.Addr)))}
}

// canaryWord is what the canaries of slot i have at addresses that are
// multiples of 8.
func (s *Span) canaryWord(secret uint64, i int) uint64 {
	if s.Large() {
		return CanaryWord(secret, LargeNumber(s.raw.Words))
	}
	return CanaryWord(secret, SlotNumber(s.raw.Words+8*uint64(i)))
}

// CanaryWordOf is what the canaries of an object have at addresses that are
// multiples of 8. The error says why its span could not be read.
func (h *Heap) CanaryWordOf(o *Object) (uint64, error) {
	s, err := h.spans.spanAt(o.Slot)
	if err != nil {
		return 0, err
	}
	if s != nil {
		if slot, ok := s.slotOf(o.Slot); ok {
			return s.canaryWord(h.root.Options.Canary, slot), nil
		}
	}
	return 0, fmt.Errorf("agent: no slot is at %v any more", o.Slot)
}

// CanaryWord is what the canaries of slot i of the batch have.
func (b *Batch) CanaryWord(h *Heap, i int) uint64 {
	return b.Span.canaryWord(h.root.Options.Canary, b.First+i)
}

// FillWordOf is what a freed object is filled with.
func (h *Heap) FillWordOf(o *Object) uint64 { return FillWord(h.root.Objects.Start, uint64(o.Addr)) }

// Stands reports whether memory read from addr is made of copies of a word
// that begin at multiples of 8.
func Stands(addr evidence.Addr, p []byte, word uint64) bool {
	for len(p) > 0 && addr%8 != 0 {
		if p[0] != wordByte(addr, word) {
			return false
		}
		addr++
		p = p[1:]
	}
	for len(p) >= 8 {
		if binary.LittleEndian.Uint64(p) != word {
			return false
		}
		addr += 8
		p = p[8:]
	}
	for i := range p {
		if p[i] != wordByte(addr+evidence.Addr(i), word) {
			return false
		}
	}
	return true
}

func wordByte(addr evidence.Addr, word uint64) byte { return byte(word >> (addr % 8 * 8)) }

const (
	maxShown  = 64 // bytes of a damage that are kept
	maxBefore = 16 // bytes of the row before it
)

// Damage reads a range around or in an object that should be made of copies of
// a word, and describes what differs; nil if nothing does. Reaches is left to
// the caller, who knows which end is the far one.
func (h *Heap) Damage(o *Object, r Range, word uint64) (*evidence.Damage, error) {
	got := make([]byte, r.Len())
	if err := h.source.read("guarded bytes", uint64(r.Start), got); err != nil {
		return nil, err
	}
	want := make([]byte, len(got))
	first, last, differ := -1, 0, 0
	for i := range got {
		want[i] = wordByte(r.Start+evidence.Addr(i), word)
		if got[i] == want[i] {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i + 1
		differ++
	}
	if first < 0 {
		return nil, nil
	}
	shown := min(last, first+maxShown)
	d := &evidence.Damage{
		Start: r.Start + evidence.Addr(first), End: r.Start + evidence.Addr(last), Overwritten: differ,
		Bytes: hex.EncodeToString(got[first:shown]), Text: wording.Printable(got[first:shown]),
		Expected: hex.EncodeToString(want[first:shown]),
	}
	d.Offset = int64(d.Start - o.Addr)
	// The object's own memory and its guards: the bytes before say nothing.
	low := max(min(o.Slot, r.Start), d.Start&^15-maxBefore)
	before := make([]byte, d.Start-low)
	if _, err := h.source.memory.ReadMemory(low, before); err == nil {
		d.Before = hex.EncodeToString(before)
	}
	return d, nil
}
