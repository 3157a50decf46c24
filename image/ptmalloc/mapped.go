package ptmalloc

import (
	"diagnose/evidence"
	"diagnose/image"
)

// MappedChunks calls visit with the chunks that malloc mapped for themselves, in the order of address, until it returns false. They
// are in no list, so they are found by their headers, at the starts of pages of memory without a file: a page of other memory may begin
// like one. Memory that cannot be read has none.
func (h *Heap) MappedChunks(visit func(*Chunk) bool) {
	for i := range h.mappings {
		m := &h.mappings[i]
		if m.Writable() && m.Path == "" && h.process.ModuleAt(m.Start) == nil && !h.mappedIn(m, visit) {
			return
		}
	}
}

// mappedIn visits the chunks of a mapping. It returns false if visit did.
func (h *Heap) mappedIn(m *image.Mapping, visit func(*Chunk) bool) bool {
	page := make([]byte, pageSize)
	for at := m.Start; at < m.End; {
		if s := h.segmentAt(at); s != nil && s.End > at {
			at = s.End
			continue
		}
		n, err := h.cache.ReadMemory(at, page[:min(pageSize, uint64(m.End-at))])
		if err != nil || n < pageSize {
			at = h.nextRead(at, m.End)
			continue
		}
		c, found := mappedOn(page, at, m)
		if !found {
			at += pageSize
			continue
		}
		if !visit(&c) {
			return false
		}
		at = c.End()
	}
	return true
}

// segmentAt is the segment that contains an address; nil: none does.
func (h *Heap) segmentAt(at evidence.Addr) *Segment {
	for _, a := range h.Arenas {
		for i := range a.Segments {
			if a.Segments[i].Contains(at) {
				return &a.Segments[i]
			}
		}
	}
	return nil
}

// nextRead is the next page after one that cannot be read. A core may name terabytes that it does not have, so the step grows.
func (h *Heap) nextRead(at, end evidence.Addr) evidence.Addr {
	var b [1]byte
	for step := evidence.Addr(pageSize); end-at > step; step *= 2 {
		at += step
		if _, err := h.mem.ReadMemory(at, b[:]); err == nil {
			return at
		}
	}
	return end
}

// mappedOn is the chunk whose header is on a page: at its start, or, if it was asked for with an alignment, 16 bytes before a multiple of that
// (malloc/malloc.c, _int_memalign: prev_size then has the distance to the start of the memory).
func mappedOn(page []byte, at evidence.Addr, m *image.Mapping) (Chunk, bool) {
	for off := 0; off < pageSize; off = 2*off + headerSize {
		c := parseChunk(at+evidence.Addr(off), page[off:])
		whole := c.PrevSize + c.Size
		if c.SizeWord&chunkFlags == isMmapped && c.PrevSize%pageSize == uint64(off) && c.PrevSize <= uint64(c.Addr-m.Start) &&
			c.Size >= leastChunk && whole%pageSize == 0 && c.Size <= uint64(m.End-c.Addr) {
			c.Mapped = true
			return c, true
		}
	}
	return Chunk{}, false
}
