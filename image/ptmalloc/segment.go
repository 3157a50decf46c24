package ptmalloc

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
)

// mostHeaps bounds the heaps of one arena.
const mostHeaps = 4096

// mainSegments finds the memory of the main arena: the end of the mapping that has its top, as much as the arena has
// from the kernel. Before it is what the program itself took from the program break (a static program's
// thread-local memory). If the program takes more of it later, or if malloc got memory elsewhere because the break could
// not grow, that is more than the mapping has, or no chunk begins there: then the arena is left without memory.
func (h *Heap) mainSegments(a *Arena) {
	m := h.mappingAt(a.Top)
	if m == nil || !m.Writable() || h.process.ModuleAt(a.Top) != nil {
		return
	}
	start, end := h.joined(m)
	if a.SystemMemory > uint64(end-start) || a.Top >= end {
		return
	}
	s := Segment{Start: aligned(end - evidence.Addr(a.SystemMemory)), End: end, arena: a}
	if s.Start != start && !h.row(&s, s.Start) {
		return
	}
	a.Segments = append(a.Segments, s)
}

// joined is the memory around a mapping that calls of mprotect and madvise have cut.
func (h *Heap) joined(m *image.Mapping) (start, end evidence.Addr) {
	i := slices.IndexFunc(h.mappings, func(x image.Mapping) bool { return x.Start == m.Start })
	alike := func(j int) bool {
		return j >= 0 && j < len(h.mappings) && h.mappings[j].Writable() && h.mappings[j].Path == m.Path && h.process.ModuleAt(h.mappings[j].Start) == nil
	}
	start, end = m.Start, m.End
	for j := i - 1; alike(j) && h.mappings[j].End == start; j-- {
		start = h.mappings[j].Start
	}
	for j := i + 1; alike(j) && h.mappings[j].Start == end; j++ {
		end = h.mappings[j].End
	}
	return start, end
}

// heapSegments finds the heaps of an arena, from the one with its top backwards. The oldest one
// begins with the arena's state.
func (h *Heap) heapSegments(a *Arena, l stateLayout) {
	base := a.Top &^ (heapSize - 1)
	seen := map[evidence.Addr]bool{}
	for range mostHeaps {
		info, ok := h.heapInfo(base)
		if !ok || info.arena != a.Addr || seen[base] {
			break
		}
		seen[base] = true
		s := Segment{Start: h.infoEnd(base, l, a), End: base + evidence.Addr(info.size), arena: a}
		a.Segments = append(a.Segments, s)
		if info.previous == 0 {
			break
		}
		base = info.previous
	}
	slices.SortFunc(a.Segments, func(x, y Segment) int {
		if x.Start < y.Start {
			return -1
		}
		return 1
	})
}

// infoEnd is the first chunk of a heap. heap_info is as long as the distance to the state of an
// arena shows: 0x20 bytes, and 0x30 since glibc 2.35.
func (h *Heap) infoEnd(base evidence.Addr, l stateLayout, a *Arena) evidence.Addr {
	first := a.Addr &^ (heapSize - 1)
	info := a.Addr - first
	if base != first {
		return aligned(base + info)
	}
	return aligned(a.Addr + l.system + 2*word)
}

// aligned is the next address at which the memory of a chunk can be so that what malloc returns is
// aligned.
func aligned(at evidence.Addr) evidence.Addr { return (at + 15) &^ 15 }
