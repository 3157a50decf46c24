package mallocsum

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
)

// span is memory from start to end.
type span struct{ start, end evidence.Addr }

// Bounds of the memory that is searched.
const (
	mostSearched = 64 << 30 // bytes
	mostFailed   = 1 << 17  // reads of a step that return nothing
	searchStep   = 1 << 20
)

// roots is the memory outside of the heap that can have pointers into it.
type roots struct {
	// data is the static memory of objects, other the rest: stacks as far as they are in use, thread-local memory, mappings.
	data, other []span
	// missing is the writable memory that cannot be read, in bytes; unwritten that which was never written to or is excluded from cores.
	missing, unwritten uint64
}

// findRoots divides the memory of a process. The heap is what the objects are in: the spans of the heap, in any order, are not searched as a whole.
// Code is left out, and so is memory without permission to read.
func findRoots(p *image.Process, heap []span) roots {
	excluded := slices.Clone(heap)
	for _, u := range p.UnusedStacks() {
		excluded = append(excluded, span{u[0], u[1]})
	}
	slices.SortFunc(excluded, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	var r roots
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if !m.Readable() || m.Executable() && !m.Writable() {
			continue
		}
		if m.Untouched {
			r.unwritten += m.Missing
			continue
		}
		inObject := p.ModuleAt(m.Start) != nil
		if !m.Writable() && m.Path != "" && !inObject {
			continue // a file that the process has not written to
		}
		if m.Writable() {
			r.missing += m.Missing
		}
		if inObject {
			r.data = append(r.data, without(span{m.Start, m.End}, excluded)...)
		} else {
			r.other = append(r.other, without(span{m.Start, m.End}, excluded)...)
		}
	}
	return r
}

// without is a span without those of a sorted list.
func without(s span, excluded []span) (list []span) {
	i, _ := slices.BinarySearchFunc(excluded, s.start, func(x span, at evidence.Addr) int { return cmp.Compare(x.end, at) })
	for ; i < len(excluded) && excluded[i].start < s.end; i++ {
		x := excluded[i]
		if x.start > s.start {
			list = append(list, span{s.start, x.start})
		}
		s.start = max(s.start, x.end)
	}
	if s.start < s.end {
		list = append(list, s)
	}
	return list
}

// searcher reads words of memory that have addresses of objects.
type searcher struct {
	memory image.Memory
	table  *table
	// searched are the bytes read, failed the reads that returned nothing, unread the bytes that could not be read.
	searched, unread uint64
	failed           int
	// cut: a bound was reached, and the rest was not searched.
	cut    bool
	buffer []byte
}

// search calls hit with the words of a span that have addresses between the lowest and the highest object, and where they are.
func (s *searcher) search(x span, hit func(at, word evidence.Addr)) {
	low, high := uint64(s.table.low), uint64(s.table.high)
	for at := (x.start + 7) &^ 7; at < x.end && !s.cut; {
		data := s.buffer[:min(searchStep, uint64(x.end-at))]
		n, _ := s.memory.ReadMemory(at, data)
		s.searched += uint64(n)
		if n == 0 {
			s.failed++
		}
		s.cut = s.searched > mostSearched || s.failed > mostFailed
		for off := 0; off+8 <= n; off += 8 {
			if v := binary.LittleEndian.Uint64(data[off:]); v-low < high-low {
				hit(at+evidence.Addr(off), evidence.Addr(v))
			}
		}
		if n == len(data) {
			at += evidence.Addr(n)
			continue
		}
		// The rest of the page that failed, or of the step, is not there.
		next := at + evidence.Addr(n)&^(pageSize-1) + pageSize
		if n == 0 {
			next = at + evidence.Addr(len(data))
		}
		next = min(next, x.end)
		s.unread += uint64(next-at) - uint64(n)
		at = next
	}
}

const pageSize = 4096
