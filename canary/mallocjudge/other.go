package mallocjudge

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
	"diagnose/image/jemalloc"
	"diagnose/image/tcmalloc"
	"diagnose/internal/wording"
)

// OpenOther finds the heap of an allocator that a program uses instead of the C library's; nil: there is none, or it cannot
// be read with certainty.
func OpenOther(p *image.Process) allocator.Heap {
	if h, err := jemalloc.Open(p); err == nil {
		return h
	}
	if h, err := tcmalloc.Open(p); err == nil {
		return h
	}
	return nil
}

// ProofOf is how certain the state of an object of another allocator is. While a thread is inside the allocator, its
// structures may not agree with each other.
func ProofOf(p *image.Process, h allocator.Heap, o *allocator.Object, stacks []evidence.ThreadGroup) evidence.Proof {
	if o.Linked {
		return evidence.Inferred
	}
	for i := range stacks {
		for k := range stacks[i].Stack.Frames {
			if inside(p, h, &stacks[i].Stack.Frames[k].Site) {
				return evidence.Inferred
			}
		}
	}
	return evidence.FromCore
}

// inside reports whether a frame may be the allocator's.
func inside(p *image.Process, h allocator.Heap, site *evidence.Site) bool {
	if p.ModuleAt(site.PC) != h.Module() {
		return false
	}
	if h.Module() != p.Exe || site.Function == "" {
		return true
	}
	for _, part := range []string{"alloc", "free", "je_", "operator new", "operator delete"} {
		if strings.Contains(site.Function, part) {
			return true
		}
	}
	return false
}

// otherHeap judges a failure by the heap of another allocator.
func (j *judge) otherHeap() {
	j.otherFreed()
	for i := range j.Pointers {
		j.otherPointer(&j.Pointers[i])
	}
}

// otherChunk describes an object of another allocator.
func (j *judge) otherChunk(o *allocator.Object) *evidence.Chunk {
	x := &evidence.Chunk{Allocator: j.Other.Name(), Addr: o.Start, Size: o.Size, State: o.State, List: o.List, Pages: o.Pages}
	if o.Thread >= 0 && o.Thread < len(j.Process.Threads) {
		ref := j.Process.Threads[o.Thread].Ref
		x.Thread = &ref
	}
	const shown = 32
	x.First = j.bytesAt(x.Addr, int(min(x.Size, shown)))
	if !o.Pages {
		j.chunks = append(j.chunks, x)
	}
	return x
}

// otherFreed looks at the pointer that was passed to free or realloc, if the process ended there.
func (j *judge) otherFreed() {
	if j.Freed == nil {
		return
	}
	at := *j.Freed
	f := evidence.Finding{Addr: at, Proof: evidence.Inferred, Heap: &evidence.HeapFacts{Pointer: at}}
	o, found := j.Other.At(at)
	switch {
	case at == 0:
		return
	case !found:
		if j.mapped(at) {
			return
		}
		f.Kind = evidence.FindingInvalidFree
		f.Summary = fmt.Sprintf("free of %v, which is no object of the heap: it is %s", at, j.Process.Place(at).Text)
	case o.State == evidence.ChunkInUse && at != o.Start:
		f.Kind, f.Heap.Object, f.Heap.Offset = evidence.FindingInvalidFree, j.otherChunk(&o), uint64(at-o.Start)
		f.Summary = fmt.Sprintf("free of a pointer %s into %s", wording.Count(f.Heap.Offset, "byte"), objectWords(f.Heap.Object))
	case o.State == evidence.ChunkFree && !o.Pages && at == o.Start:
		f.Kind, f.Heap.Object = evidence.FindingDoubleFree, j.otherChunk(&o)
		f.Summary = fmt.Sprintf("double free of %s: it is free already, in the %s", objectWords(f.Heap.Object), o.List)
	default:
		return
	}
	j.list = append(j.list, f)
}

// otherPointer says which object a pointer points into.
func (j *judge) otherPointer(p *Pointer) {
	o, found := j.Other.At(p.Addr)
	if !found || o.Own || j.known(o.Start) {
		return
	}
	if o.State == evidence.ChunkInUse && p.Cell && j.overrunInto(&o, p.Addr) {
		return
	}
	f := evidence.Finding{Kind: evidence.FindingHeapObject, Addr: p.Addr, Proof: ProofOf(j.Process, j.Other, &o, j.Stacks),
		Heap: &evidence.HeapFacts{Object: j.otherChunk(&o), Pointer: p.Addr, Offset: uint64(p.Addr - o.Start)}}
	of := objectWords(f.Heap.Object)
	switch {
	case o.Pages:
		of = fmt.Sprintf("%s of free pages at %v", wording.Count(o.Size, "byte"), o.Start)
	case o.State == evidence.ChunkFree:
		of += ", which is free"
	}
	f.Summary = fmt.Sprintf("%s %v is at offset %d of %s", p.Name, p.Addr, f.Heap.Offset, of)
	j.list = append(j.list, f)
}

// overrunInto reports the object before one whose contents, a text without an end, continue into it up to a bad pointer.
// Other contents do not tell a neighbour's from the object's own.
func (j *judge) overrunInto(o *allocator.Object, cell evidence.Addr) bool {
	const looked, farthest = 16, 4096
	before, found := j.Other.At(o.Start - 1)
	offset := uint64(cell - o.Start)
	if !found || before.State != evidence.ChunkInUse || before.End() != o.Start || before.Size < looked || offset > farthest {
		return false
	}
	data := make([]byte, looked+offset+allocator.Word)
	if _, err := j.Process.ReadMemory(o.Start-looked, data); err != nil {
		return false
	}
	for len(data) > allocator.Word && texts(word(data)) {
		data = data[allocator.Word:]
	}
	if len(data) != allocator.Word || !texts(word(data)) && (!textEnd(word(data)) || textLength(word(data)) == 0) {
		return false
	}
	over := j.otherChunk(&before)
	j.list = append(j.list, evidence.Finding{Kind: evidence.FindingHeapOverflow, Addr: before.Start, Size: int(min(before.Size, 1<<31)), Proof: evidence.Inferred,
		Heap:    &evidence.HeapFacts{Object: over, Next: j.otherChunk(o), Pointer: cell},
		Summary: fmt.Sprintf("heap overflow: %s was overrun; its text continues into the object at %v", objectWords(over), o.Start)})
	return true
}

// otherHolder describes a word in an object of another allocator. mine: the word is the allocator's own, or it is in free memory.
func (j *judge) otherHolder(h *evidence.Holder, p *pointer) (found, mine bool) {
	if j.Other == nil {
		return false, false
	}
	if m := j.Process.ModuleAt(p.at); m != nil {
		place := j.Process.Place(p.at)
		return false, m == j.Other.Module() && (m != j.Process.Exe || strings.Contains(place.Symbol, "malloc") || strings.Contains(place.Symbol, "je_"))
	}
	o, ok := j.Other.At(p.at)
	if !ok {
		return false, false
	}
	h.Kind, h.Object, h.ObjectSize, h.ObjectOffset = evidence.HolderObject, o.Start, o.Size, uint64(p.at-o.Start)
	return true, o.State != evidence.ChunkInUse || o.Own || o.Start == p.to.Addr
}
