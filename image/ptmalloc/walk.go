package ptmalloc

import (
	"diagnose/evidence"
)

// BadHeader is a chunk whose header is not as malloc makes it.
type BadHeader struct {
	Fault evidence.HeaderFault
	// Chunk has the header as it is.
	Chunk Chunk
	// Before is the chunk before it; nil when it is the first.
	Before *Chunk
	// Next is the next address with a whole chunk; 0 when it was not found. Then the size that the chunk had is not known.
	Next evidence.Addr
	// Doubt: the header may be whole, and the size of the chunk before it overwritten.
	Doubt bool
}

// TrueSize is the size that the chunk had; 0 when it is not known.
func (b *BadHeader) TrueSize() uint64 {
	if b.Next == 0 {
		return 0
	}
	return uint64(b.Next - b.Chunk.Addr)
}

// judged is the fault of a chunk of a segment, given the chunk before.
func (h *Heap) judged(s *Segment, c, before *Chunk) evidence.HeaderFault {
	top := c.Addr == s.arena.Top
	switch {
	case !top && c.Size < leastChunk, c.Size%16 != 0:
		return evidence.HeaderSize
	case c.Size > uint64(s.End-c.Addr):
		if top {
			return evidence.HeaderTop
		}
		return evidence.HeaderBeyond
	case top && c.End() != s.End:
		return evidence.HeaderTop
	case c.SizeWord&isMmapped != 0, s.arena.Main && c.SizeWord&nonMain != 0:
		return evidence.HeaderFlags
	case !top && c.Addr < s.arena.Top && c.End() > s.arena.Top && s.Contains(s.arena.Top):
		return evidence.HeaderBeyond
	}
	if before == nil {
		if c.SizeWord&prevInUse == 0 {
			return evidence.HeaderPrevFree
		}
		return ""
	}
	// A chunk that is just being taken from its list is in none, so only the sizes have to agree.
	switch {
	case c.SizeWord&prevInUse == 0 && c.PrevSize != before.Size:
		return evidence.HeaderPrevFree
	case c.SizeWord&prevInUse != 0 && binned(before.Free.List):
		return evidence.HeaderPrevUsed
	}
	return ""
}

// ends reports whether the segment ends with a chunk: it is the top, or the two headers without
// contents that malloc puts at the end of a heap that has no top any more.
func (h *Heap) ends(s *Segment, c *Chunk) bool {
	if c.Addr == s.arena.Top {
		return true
	}
	if s.Contains(s.arena.Top) || c.Size != fencepost || c.SizeWord&prevInUse == 0 && c.PrevSize == 0 {
		return false
	}
	next, err := h.chunkAt(c.End())
	return err == nil && next.Size == 0
}

// Walk calls visit with the chunks of a segment in the order of address, the top included, until visit returns
// false, a header is bad, or memory cannot be read. It returns the bad header, if that ended it.
func (h *Heap) Walk(s *Segment, visit func(*Chunk) bool) (*BadHeader, error) {
	return h.walk(s, s.Start, visit)
}

// walk is Walk from a chunk on. Which chunk is before the first one is not known, unless that is the segment's first.
func (h *Heap) walk(s *Segment, start evidence.Addr, visit func(*Chunk) bool) (*BadHeader, error) {
	var last *Chunk
	for at := start; at < s.End; {
		c, err := h.chunkAt(at)
		if err != nil {
			return nil, err
		}
		c.Top = at == s.arena.Top
		if !c.Top && h.ends(s, &c) {
			return nil, nil
		}
		judged := c
		if last == nil && start != s.Start {
			judged.SizeWord |= prevInUse
		}
		if fault := h.judged(s, &judged, last); fault != "" {
			return &BadHeader{Fault: fault, Chunk: c, Before: last}, nil
		}
		if !visit(&c) || c.Top {
			return nil, nil
		}
		at, last = c.End(), &c
	}
	return nil, nil
}

// Check walks a segment and returns its first bad header; nil: the whole segment is as malloc makes it.
func (h *Heap) Check(s *Segment) (*BadHeader, error) {
	var beforeLast *Chunk
	var last Chunk
	bad, err := h.Walk(s, func(c *Chunk) bool {
		if last.Addr != 0 {
			x := last
			beforeLast = &x
		}
		last = *c
		return true
	})
	if bad == nil || err != nil {
		return bad, err
	}
	return h.settle(s, bad, beforeLast), nil
}

// The search for a whole row of chunks.
const (
	rowLength  = 6       // chunks in a row that cannot be by chance
	farthestOn = 4 << 20 // bytes after the bad header
)

// settle finds out which header of two was overwritten. A size that was overwritten with one that is possible leads
// the walk into the contents of chunks, where the next header looks bad.
func (h *Heap) settle(s *Segment, bad *BadHeader, beforeLast *Chunk) *BadHeader {
	bad.Next = h.nextRow(s, bad.Chunk.Addr+leastChunk, s.End)
	before := bad.Before
	_, listed := h.free[bad.Chunk.Addr]
	if before == nil || listed || bad.Chunk.Addr == s.arena.Top || bad.Fault == evidence.HeaderPrevFree || bad.Fault == evidence.HeaderPrevUsed {
		return bad
	}
	earlier := *before
	earlier.Free = h.free[earlier.Addr]
	if inner := h.nextRow(s, before.Addr+leastChunk, bad.Chunk.Addr); inner != 0 {
		return &BadHeader{Fault: evidence.HeaderSkips, Chunk: earlier, Before: beforeLast, Next: inner}
	}
	bad.Doubt = bad.Chunk.SizeWord == 0
	return bad
}

// nextRow is the first address from start to end at which a row of whole chunks begins; 0: there is none near.
func (h *Heap) nextRow(s *Segment, start, end evidence.Addr) evidence.Addr {
	if uint64(end-start) > farthestOn {
		end = start + farthestOn
	}
	for at := start; at < end; at += 16 {
		if h.row(s, at) {
			return at
		}
	}
	return 0
}

// row reports whether whole chunks follow each other from an address, to the end of the segment or for long enough.
func (h *Heap) row(s *Segment, at evidence.Addr) bool {
	var last *Chunk
	for n := range rowLength {
		c, err := h.chunkAt(at)
		if err != nil {
			return false
		}
		c.Top = at == s.arena.Top
		if !c.Top && n > 0 && h.ends(s, &c) {
			return true
		}
		if n == 0 && c.SizeWord&prevInUse == 0 { // which chunk is before is not known
			c.SizeWord |= prevInUse
		}
		if h.judged(s, &c, last) != "" {
			return false
		}
		if c.Top {
			return true
		}
		at, last = c.End(), &c
	}
	return true
}

// At returns the chunk that contains an address: of a segment that can be walked to it, or one that malloc mapped for itself.
func (h *Heap) At(at evidence.Addr) (Chunk, bool) {
	found := h.AtAll([]evidence.Addr{at})
	c, ok := found[at]
	return c, ok
}

// AtAll is At for several addresses, with one walk of each segment.
func (h *Heap) AtAll(list []evidence.Addr) map[evidence.Addr]Chunk {
	found := map[evidence.Addr]Chunk{}
	for _, s := range h.Segments() {
		var here []evidence.Addr
		for _, a := range list {
			if s.Contains(a) {
				here = append(here, a)
			}
		}
		h.locate(&s, here, found)
	}
	for _, a := range list {
		if _, known := found[a]; known {
			continue
		}
		if c, ok := h.mapped(a); ok {
			found[a] = c
		}
	}
	return found
}

// locate finds the chunks of a segment that contain addresses. After a bad header it continues at the next row of
// whole chunks.
func (h *Heap) locate(s *Segment, list []evidence.Addr, found map[evidence.Addr]Chunk) {
	if len(list) == 0 {
		return
	}
	sorted := sortedAddresses(list)
	h.Chunks(s, func(c *Chunk) bool {
		for len(sorted) > 0 && sorted[0] < c.UserEnd() {
			if sorted[0] >= c.Addr {
				found[sorted[0]] = *c
			}
			sorted = sorted[1:]
		}
		return len(sorted) > 0
	})
}

// mostGaps bounds the bad headers that Chunks passes over in one segment.
const mostGaps = 64

// Chunks calls visit with the whole chunks of a segment, and passes over bad headers where it finds the next row.
// It returns how many there were.
func (h *Heap) Chunks(s *Segment, visit func(*Chunk) bool) (gaps int, err error) {
	start, stopped := s.Start, false
	for range mostGaps {
		bad, err := h.walk(s, start, func(c *Chunk) bool {
			stopped = !visit(c)
			return !stopped
		})
		if bad == nil || err != nil || stopped {
			return gaps, err
		}
		gaps++
		if bad = h.settle(s, bad, nil); bad.Next == 0 {
			return gaps, nil
		}
		start = bad.Next
	}
	return gaps, nil
}

// mapped is a chunk of the mapping around an address, found by following the headers from the mapping's
// start: the kernel joins neighbouring mappings.
func (h *Heap) mapped(at evidence.Addr) (Chunk, bool) {
	m := h.mappingAt(at)
	if m == nil || !m.Writable() || h.process.ModuleAt(m.Start) != nil {
		return Chunk{}, false
	}
	const most = 4096
	start := m.Start
	for range most {
		c, err := h.chunkAt(start)
		if err != nil || c.SizeWord&chunkFlags != isMmapped || c.Size == 0 || c.Size%pageSize != 0 || c.Size > uint64(m.End-start) {
			return Chunk{}, false
		}
		c.Mapped = true
		if at < c.End() {
			return c, true
		}
		start = c.End()
	}
	return Chunk{}, false
}
