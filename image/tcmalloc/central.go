package tcmalloc

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// The layout of class CentralFreeListPadded (central_freelist.h).
const (
	centralSize  = 1216
	offClass     = 8
	offEmpty     = 16 // the list of spans without free objects
	offNonempty  = 64
	offSpans     = 112
	offSlots     = 128
	slotCount    = 64 // kMaxNumTransferEntries
	slotSize     = 16
	offUsedSlots = 1152
	mostSpans    = 1 << 20 // of one class that are read
	mostFree     = 4 << 20 // free objects of one class that are read
)

// findCentral finds the central lists in the data of a module: one for each class, with its number.
func findCentral(regions []allocator.Region, classes int) (evidence.Addr, bool) {
	for i := range regions {
		r := &regions[i]
		for off := 0; off+classes*centralSize <= len(r.Data); off += allocator.Word {
			n := 1
			for n < classes && r.Word(off+n*centralSize+offClass) == uint64(n) {
				n++
			}
			if n == classes {
				return r.Start + evidence.Addr(off), true
			}
		}
	}
	return 0, false
}

// central is a central list.
type central struct {
	at    evidence.Addr
	class int
	raw   [centralSize]byte
}

func (h *Heap) readCentral(class int) (*central, error) {
	c := &central{at: h.central + evidence.Addr(class*centralSize), class: class}
	_, err := h.memory.ReadMemory(c.at, c.raw[:])
	return c, err
}

// spans calls visit with the spans of a class until it returns false. It reports whether the lists are whole: they lead back to their
// heads, and have as many spans as are counted.
func (h *Heap) spans(c *central, visit func(*span) bool) bool {
	count := uint64(0)
	for _, off := range []int{offEmpty, offNonempty} {
		head := c.at + evidence.Addr(off)
		before, at := head, evidence.Addr(binary.LittleEndian.Uint64(c.raw[off+offNext:]))
		for at != head {
			s, err := readSpan(h.memory, at)
			if count++; err != nil || count > mostSpans || s.prev != before || s.class != c.class || s.free {
				return false
			}
			if !visit(s) {
				return true
			}
			before, at = at, s.next
		}
	}
	return count == binary.LittleEndian.Uint64(c.raw[offSpans:])
}

// findMap finds the root of the page map: a word of the data of a module leads to a leaf that has
// some spans at their pages, and the other words of the root lead to the rest.
func (h *Heap) findMap(regions []allocator.Region) bool {
	known := h.someSpans()
	if len(known) == 0 {
		return false
	}
	first := known[0]
	var found []evidence.Addr
	for i := range regions {
		r := &regions[i]
		for off := 0; off+allocator.Word <= len(r.Data); off += allocator.Word {
			leaf := evidence.Addr(r.Word(off))
			if leaf == 0 || leaf%allocator.Word != 0 || !leaf.Canonical() {
				continue
			}
			at, err := image.Uint64(h.memory, leaf+evidence.Addr(first.start%leafLength)*allocator.Word)
			root := r.Start + evidence.Addr(off) - evidence.Addr(first.start>>leafBits)*allocator.Word
			if err != nil || evidence.Addr(at) != first.at || root < r.Start || root+rootBytes > r.End() {
				continue
			}
			if m := (pageMap{h.memory, root}); m.hasAll(known) {
				found = append(found, root)
			}
		}
	}
	if len(found) != 1 {
		return false
	}
	h.pages = pageMap{h.memory, found[0]}
	return true
}

// hasAll reports whether the map has spans at their first and last pages.
func (m *pageMap) hasAll(list []*span) bool {
	for _, s := range list {
		if _, ok := m.whole(s.at); !ok {
			return false
		}
	}
	return true
}

// mostKnown bounds the spans by which the page map is found.
const mostKnown = 64

// someSpans are spans of small objects.
func (h *Heap) someSpans() (list []*span) {
	for i := 1; i < len(h.classes); i++ {
		c, err := h.readCentral(i)
		if err != nil {
			return nil
		}
		h.spans(c, func(s *span) bool {
			if s.possible() && s.length == h.classes[i].pages {
				list = append(list, s)
			}
			return len(list) < mostKnown
		})
	}
	return list
}
