package driver

import (
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/staticscan"
)

// freed tells whether the bad pointer was read from a free block of the heap.
func (a *analysis) freed(blame *staticscan.Blame) bool {
	if blame.Cell == nil || blame.Role == "" || a.heap != nil { // malloc is the agent's then
		return false
	}
	b, ok := failure.Freed(a.process, *blame.Cell)
	if !ok {
		return false
	}
	offset := uint64(*blame.Cell - b.Addr)
	f := evidence.Finding{
		Kind:    evidence.FindingFreedMemory,
		Summary: fmt.Sprintf("%s at %v lies in memory that was freed", blame.CellName, *blame.Cell),
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
	a.result.Findings = append(a.result.Findings, f)
	return true
}
