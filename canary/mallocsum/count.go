package mallocsum

import (
	"diagnose/evidence"
	"diagnose/image/ptmalloc"
)

// count is the chunks of a heap.
type count struct {
	arenas []evidence.MallocArena
	live   []object
	// spans is the memory that chunks and malloc's lists are in: it is not searched as a whole.
	spans                []span
	mapped, mappedMemory uint64
	// gaps counts the overwritten headers; first is the first one.
	gaps uint64
	// unread is the first error of reading chunks.
	unread error
	cut    bool
}

// countChunks walks all chunks. Those that malloc uses itself are no objects.
func countChunks(h *ptmalloc.Heap) *count {
	c := &count{}
	for _, a := range h.Arenas {
		out := evidence.MallocArena{Addr: a.Addr, Main: a.Main, SystemBytes: a.SystemMemory}
		c.spans = append(c.spans, span{a.Addr, a.ListsEnd()})
		for i := range a.Segments {
			c.segment(h, &a.Segments[i], &out)
		}
		c.arenas = append(c.arenas, out)
	}
	h.MappedChunks(func(x *ptmalloc.Chunk) bool {
		c.spans = append(c.spans, span{x.Addr, x.End()})
		c.mapped++
		c.mappedMemory += x.Size + x.PrevSize
		return c.add(x)
	})
	return c
}

func (c *count) segment(h *ptmalloc.Heap, s *ptmalloc.Segment, out *evidence.MallocArena) {
	end := s.Start
	gaps, err := h.Chunks(s, func(x *ptmalloc.Chunk) bool {
		end = x.End()
		switch {
		case x.Top:
			out.TopBytes += x.Size
		case !x.InUse():
			out.Free++
			out.FreeBytes += x.Size
			out.LargestFree = max(out.LargestFree, x.Size)
		case !h.IsTable(x):
			out.LiveObjects++
			out.LiveBytes += x.UserSize()
			return c.add(x)
		}
		return true
	})
	c.gaps += uint64(gaps)
	if err != nil && c.unread == nil {
		c.unread = err
	}
	// What could not be walked may have pointers.
	if gaps == 0 && err == nil {
		end = s.End
	}
	c.spans = append(c.spans, span{s.Start, end})
}

// add keeps a live object. It returns false when there are too many.
func (c *count) add(x *ptmalloc.Chunk) bool {
	if len(c.live) >= mostObjects {
		c.cut = true
		return false
	}
	c.live = append(c.live, object{start: x.User(), size: x.UserSize(), mapped: x.Mapped})
	return true
}
