package driver

import (
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// readFromFreeBlock is the block of malloc's lists of free blocks that the bad pointer was read
// from; nil if it was read elsewhere.
func readFromFreeBlock(p *image.Process, blame *staticscan.Blame) *evidence.Finding {
	if blame.Cell == nil || blame.Role == "" {
		return nil
	}
	b, ok := failure.Freed(p, *blame.Cell)
	if !ok {
		return nil
	}
	offset := uint64(*blame.Cell - b.Addr)
	f := &evidence.Finding{
		Kind:    evidence.FindingFreedMemory,
		Summary: fmt.Sprintf("%s at %v is in memory that was freed", blame.CellName, *blame.Cell),
		Facts: []evidence.Fact{{Name: "block", Text: fmt.Sprintf("%d bytes at %v, in malloc's list of free blocks of that size; offset %d",
			b.Size, b.Addr, offset)}},
		Addr: b.Addr, Size: b.Size, Proof: evidence.FromCore,
	}
	switch offset {
	case 0:
		f.Facts = append(f.Facts, evidence.Fact{Name: "value", Text: "malloc keeps its link to the next free block there"})
	case 8:
		f.Facts = append(f.Facts, evidence.Fact{Name: "value", Text: "malloc keeps its mark of a freed block there"})
	}
	return f
}
