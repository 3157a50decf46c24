package agent

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
)

// heapRoot is the agent's root: where its structures are. What a structure says of
// addresses and numbers is compared with it.
type heapRoot struct{ RawRoot }

// window is what the code relies on of a window.
type window struct {
	name    string
	raw     *RawWindow
	offset  uint64
	limit   uint64 // bytes that it may have
	element uint64 // size of what used counts
}

func (r *heapRoot) windows() []window {
	return []window{
		{"heaps", &r.Heaps, OffHeaps, OffThreads - OffHeaps, uint64(binary.Size(RawHeap{}))},
		{"threads", &r.Threads, OffThreads, OffSites - OffThreads, threadSize},
		{"sites", &r.Sites, OffSites, OffSpans - OffSites, siteSize},
		{"spans", &r.Spans, OffSpans, OffMeta - OffSpans, spanSize},
		{"metadata", &r.Meta, OffMeta, OffObjects - OffMeta, 1},
		{"objects", &r.Objects, OffObjects, ObjectsLimit, 1},
	}
}

// check compares the root with what an agent can have written.
func (r *heapRoot) check(at uint64) error {
	if r.Version != Version {
		return fmt.Errorf("version %d of the agent's memory is not supported, only %d is", r.Version, Version)
	}
	if want := binary.Size(&r.RawRoot); r.Size != uint32(want) {
		return fmt.Errorf("it has %d bytes where version %d has %d", r.Size, Version, want)
	}
	if r.Ready == 0 {
		return errors.New("the agent had not finished its start")
	}
	if r.Base != at || at%Unit != 0 || at >= 1<<47-OffObjects-ObjectsLimit {
		return fmt.Errorf("implausible base address %#x", r.Base)
	}
	for _, w := range r.windows() {
		if w.raw.Start != r.Base+w.offset {
			return fmt.Errorf("the window of the %s is at %#x, expected at %#x", w.name, w.raw.Start, r.Base+w.offset)
		}
		if w.raw.Mapped > w.limit || w.raw.Used > w.raw.Mapped/w.element {
			return fmt.Errorf("the window of the %s is implausible: %d used, %#x bytes mapped", w.name, w.raw.Used, w.raw.Mapped)
		}
	}
	if r.Boundary < r.Objects.Start || r.Boundary > r.Objects.Start+ObjectsLimit {
		return fmt.Errorf("implausible boundary %#x of the objects", r.Boundary)
	}
	if r.Options.FillBytes > SmallMax || r.Options.Stacks > Frames {
		return fmt.Errorf("implausible options: %d bytes of fill, %d frames", r.Options.FillBytes, r.Options.Stacks)
	}
	return nil
}

// inObjects reports whether addr is in the window of the program's objects.
func (r *heapRoot) inObjects(addr evidence.Addr) bool {
	return uint64(addr) >= r.Objects.Start && uint64(addr) < r.Objects.Start+ObjectsLimit
}

// unitOf is the number of the unit that holds an address of the objects' window.
func (r *heapRoot) unitOf(addr evidence.Addr) uint64 {
	return (uint64(addr) - r.Objects.Start) >> UnitShift
}

// span checks the record of a unit that should begin a span.
func (r *heapRoot) span(unit uint64, raw RawSpan) (*Span, error) {
	start := r.Objects.Start + unit<<UnitShift
	s := &Span{Index: unit, Start: evidence.Addr(start), End: evidence.Addr(start + uint64(raw.Units)<<UnitShift), raw: raw}
	if err := r.plausible(s); err != nil {
		return nil, fmt.Errorf("agent: span of unit %d at %#x: %w", unit, start, err)
	}
	return s, nil
}

func (r *heapRoot) plausible(s *Span) error {
	raw := &s.raw
	if raw.Units == 0 || s.Index+uint64(raw.Units) > r.Spans.Used {
		return fmt.Errorf("implausible length of %d units", raw.Units)
	}
	switch raw.Kind {
	case SpanSmall:
		words := uint64(raw.Slots)
		length := uint64(raw.Units) << UnitShift
		if raw.Slot < 16 || raw.Slot > SmallMax || raw.Slot%16 != 0 || raw.First < 16 || raw.First > 4096 || raw.First%16 != 0 ||
			uint64(raw.First)+words*uint64(raw.Slot) > length || raw.Carved > raw.Slots {
			return fmt.Errorf("%d of %d slots of %d bytes after %d bytes do not fit %#x bytes", raw.Carved, raw.Slots, raw.Slot, raw.First, length)
		}
		if !r.inMeta(raw.Words, 8*words) {
			return fmt.Errorf("%d words at %#x are outside the metadata", words, raw.Words)
		}
	case SpanLarge, SpanFreed:
		if raw.End > uint64(s.End) || raw.Object < uint64(s.Start) || raw.Object > raw.End || raw.Size > raw.End-raw.Object {
			return fmt.Errorf("a large object of %d bytes at %#x does not fit up to %#x", raw.Size, raw.Object, raw.End)
		}
		// A large object's word is in the record itself.
		if want := r.Spans.Start + s.Index*spanSize + spanWord; raw.Words != want {
			return fmt.Errorf("the word of a large object is at %#x, expected at %#x", raw.Words, want)
		}
	default:
		return fmt.Errorf("unknown kind %d", raw.Kind)
	}
	return nil
}

// inMeta reports whether a range is in the mapped metadata.
func (r *heapRoot) inMeta(addr, size uint64) bool {
	m := &r.Meta
	return addr >= m.Start && addr%8 == 0 && size <= m.Mapped && addr-m.Start <= m.Mapped-size
}
