package driver

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/ptmalloc"
	"diagnose/staticscan"
)

// readFromFreeBlock is the block of malloc's lists of free blocks that the bad pointer was read
// from; nil if it was read elsewhere.
func readFromFreeBlock(p *image.Process, blame *staticscan.Blame) *evidence.Finding {
	if blame.Cell == nil || blame.Role == "" {
		return nil
	}
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
