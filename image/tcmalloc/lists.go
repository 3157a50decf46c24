package tcmalloc

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
)

// place is where a free object is.
type place struct {
	list   evidence.FreeList
	thread int
	// linked: it is not the first of its list.
	linked bool
}

// contents are the free objects of a class.
type contents struct {
	free map[evidence.Addr]place
	// whole: all lists are as tcmalloc makes them. Otherwise an object that was not found may be free.
	whole bool
}

// contentsOf reads the lists of a class.
func (h *Heap) contentsOf(class int) *contents {
	if c := h.read[class]; c != nil {
		return c
	}
	c := &contents{free: map[evidence.Addr]place{}, whole: h.complete}
	h.read[class] = c
	for _, t := range h.caches {
		first, length := t.list(class)
		h.chain(c, class, first, length, 0, place{list: evidence.ListThread, thread: t.thread})
	}
	center, err := h.readCentral(class)
	if err != nil {
		c.whole = false
		return c
	}
	used := int(binary.LittleEndian.Uint32(center.raw[offUsedSlots:]))
	if used < 0 || used > slotCount {
		used, c.whole = 0, false
	}
	for i := range used {
		slot := center.raw[offSlots+i*slotSize:]
		first, last := binary.LittleEndian.Uint64(slot), binary.LittleEndian.Uint64(slot[8:])
		h.chain(c, class, evidence.Addr(first), h.classes[class].batch, evidence.Addr(last), place{list: evidence.ListTransfer, thread: -1})
	}
	capacity := h.classes[class].capacity()
	whole := h.spans(center, func(s *span) bool {
		if s.length != h.classes[class].pages || uint64(s.used) > capacity {
			c.whole = false
			return true
		}
		h.chain(c, class, s.objects, int(capacity)-s.used, 0, place{list: evidence.ListSpan, thread: -1})
		return true
	})
	c.whole = c.whole && whole
	return c
}

// chain follows the links of a list of a number of free objects; last is its last one, 0 if that is not known.
// Of a list that is not whole, which the program may have written to, only the first object counts as free: it is known from
// outside of the objects.
func (h *Heap) chain(c *contents, class int, first evidence.Addr, length int, last evidence.Addr, p place) {
	list := make([]evidence.Addr, 0, min(length, 1<<12))
	at, before := first, evidence.Addr(0)
	whole := length >= 0 && length <= mostLength
	for at != 0 && whole {
		_, known := c.free[at]
		next, err := image.Uint64(h.memory, at)
		if whole = len(list) < length && len(c.free)+len(list) < mostFree && !known && err == nil && h.begins(at, class); !whole {
			break
		}
		list = append(list, at)
		before, at = at, evidence.Addr(next)
	}
	whole = whole && len(list) == length && (last == 0 || before == last)
	if !whole {
		c.whole = false
		list = list[:min(1, len(list))]
	}
	for i, at := range list {
		p.linked = i > 0
		c.free[at] = p
	}
}

// begins reports whether an object of a class begins at an address.
func (h *Heap) begins(at evidence.Addr, class int) bool {
	if !at.Canonical() {
		return false
	}
	s, err := h.pages.spanOf(uint64(at) >> pageShift)
	if err != nil || s.free || s.class != class {
		return false
	}
	off, size := uint64(at-s.base()), h.classes[class].size
	return off%size == 0 && off/size < h.classes[class].capacity()
}
