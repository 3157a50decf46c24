package mallocjudge

import (
	"fmt"
	"slices"

	"diagnose/evidence"
)

// judgePointers says which objects the addresses are in that the failure concerns. Of the freed object that the bad pointer was read
// from, another stage tells.
func (j *judge) judgePointers() {
	var list []evidence.Addr
	for i := range j.Pointers {
		list = append(list, j.Pointers[i].Addr)
	}
	if len(list) == 0 {
		return
	}
	proof := evidence.FromCore
	if !j.allSettled() {
		proof = evidence.Inferred
	}
	chunks := j.heap.AtAll(list)
	for i := range j.Pointers {
		p := &j.Pointers[i]
		c, found := chunks[p.Addr]
		free := !c.InUse()
		explained := func(f evidence.Finding) bool {
			return f.Addr == c.User() || f.Heap != nil && f.Heap.Next != nil && f.Heap.Next.Addr == c.User()
		}
		if !found || c.Top || p.Addr < c.User() || free && (p.Cell || c.Free.List == "") || j.known(c.User()) || slices.ContainsFunc(j.list, explained) {
			continue
		}
		object := j.chunkOf(&c)
		f := evidence.Finding{Kind: evidence.FindingHeapObject, Addr: p.Addr, Proof: proof,
			Heap: &evidence.HeapFacts{Object: object, Pointer: p.Addr, Offset: uint64(p.Addr - c.User())}}
		f.Summary = fmt.Sprintf("%s %v is at offset %d of %s", p.Name, p.Addr, f.Heap.Offset, objectWords(object))
		if free {
			f.Summary += ", which is free"
		}
		j.list = append(j.list, f)
	}
}
