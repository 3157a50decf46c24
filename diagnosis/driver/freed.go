package driver

import (
	"fmt"

	"diagnose/canary/mallocjudge"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
	"diagnose/image/ptmalloc"
	"diagnose/staticscan"
)

// readFromFreeBlock is the free memory that the bad pointer was read from; nil if it was read elsewhere.
func (a *analysis) readFromFreeBlock(blame *staticscan.Blame) *evidence.Finding {
	if blame.Cell == nil || blame.Role == "" {
		return nil
	}
	if h := a.otherHeap(); h != nil {
		if o, ok := h.At(*blame.Cell); ok {
			return a.readFromFreeObject(h, &o, blame)
		}
	}
	return readFromFreeChunk(a.process, blame)
}

// otherHeap is the heap of an allocator that the program uses instead of the C library's; nil: there is none.
func (a *analysis) otherHeap() allocator.Heap {
	if !a.otherOpened {
		a.other, a.otherOpened = mallocjudge.OpenOther(a.process), true
	}
	return a.other
}

// readFromFreeObject is the object of another allocator that the bad pointer was read from, if it is free.
func (a *analysis) readFromFreeObject(h allocator.Heap, o *allocator.Object, blame *staticscan.Blame) *evidence.Finding {
	if o.State != evidence.ChunkFree {
		return nil
	}
	block := fmt.Sprintf("an object of %d bytes (%s's size class) at %v, in the %s", o.Size, h.Name(), o.Start, o.List)
	if o.Pages {
		block = fmt.Sprintf("%d bytes of free pages of %s at %v", o.Size, h.Name(), o.Start)
	}
	if o.Thread >= 0 && o.Thread < len(a.process.Threads) {
		block += " of " + a.process.Threads[o.Thread].Ref.Label()
	}
	return &evidence.Finding{
		Kind:    evidence.FindingFreedMemory,
		Summary: fmt.Sprintf("%s at %v is in memory that was freed", blame.CellName, *blame.Cell),
		Facts:   []evidence.Fact{{Name: "block", Text: fmt.Sprintf("%s; offset %d", block, *blame.Cell-o.Start)}},
		Addr:    o.Start, Size: int(min(o.Size, 1<<31)), Proof: mallocjudge.ProofOf(a.process, h, o, a.result.Stacks),
	}
}

// readFromFreeChunk is the block of malloc's lists of free blocks that the bad pointer was read from.
func readFromFreeChunk(p *image.Process, blame *staticscan.Blame) *evidence.Finding {
	heap, err := ptmalloc.Open(p)
	if err != nil {
		return nil // another heap, or one of which too little is known
	}
	b, ok := heap.At(*blame.Cell)
	if !ok || b.Free.List == "" || *blame.Cell < b.User() {
		return nil
	}
	offset := uint64(*blame.Cell - b.User())
	f := &evidence.Finding{
		Kind:    evidence.FindingFreedMemory,
		Summary: fmt.Sprintf("%s at %v is in memory that was freed", blame.CellName, *blame.Cell),
		Facts: []evidence.Fact{{Name: "block", Text: fmt.Sprintf("%d bytes at %v, in malloc's list of free blocks (%s); offset %d",
			b.UserSize(), b.User(), b.Free.List, offset)}},
		Addr: b.User(), Size: int(min(b.UserSize(), 1<<31)), Proof: evidence.FromCore,
	}
	switch {
	case offset == 0:
		f.Facts = append(f.Facts, evidence.Fact{Name: "value", Text: "malloc keeps its link to the next free block there"})
	case offset == 8 && b.Free.List == evidence.ListTcache:
		f.Facts = append(f.Facts, evidence.Fact{Name: "value", Text: "malloc keeps its mark of a freed block there"})
	case offset == 8 && b.Free.List != evidence.ListFast:
		f.Facts = append(f.Facts, evidence.Fact{Name: "value", Text: "malloc keeps its link to the free block before there"})
	}
	return f
}
