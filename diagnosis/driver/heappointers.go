package driver

import (
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
)

// relatedAddresses are those that the failure is about.
func (a *analysis) relatedAddresses() []evidence.Addr {
	var list []evidence.Addr
	if a.cell != 0 {
		list = append(list, a.cell)
	}
	if a.filled != nil {
		list = append(list, a.filled.object.Addr)
	}
	if f := &a.result.Failure; f.Fault != nil && a.thread != nil && !a.bystander() {
		for _, p := range a.faultPointers() {
			list = append(list, p.addr)
		}
	}
	return list
}

// pointed adds the objects that the pointers of the failing instruction and
// the bad value's cell lie in or beside.
func (c *collection) pointed(a *analysis) error {
	if w := a.filled; w != nil {
		c.usedFreed(a, w)
	}
	f := &a.result.Failure
	if f.Fault == nil {
		return nil
	}
	var err error
	seen := map[evidence.Addr]bool{}
	pointers := a.faultPointers()
	slices.Reverse(pointers) // the address that failed says more than what it was made of
	if a.cell != 0 {
		pointers = append(pointers, pointer{"the bad value's memory at", a.cell})
	}
	for _, p := range pointers {
		near, found, errNear := c.heap.Nearest(p.addr)
		err = first(err, errNear)
		if !found || errNear != nil {
			continue
		}
		o := near.Object
		rank := rankPointer
		if p.addr == f.Fault.Addr && a.faulted != nil {
			o, rank = *a.faulted, rankFailure
		}
		if seen[o.Addr] || a.filled != nil && a.filled.object.Addr == o.Addr {
			continue
		}
		seen[o.Addr] = true
		c.list = append(c.list, &heapFinding{object: &o, rank: rank, Finding: evidence.Finding{
			Kind: evidence.FindingHeapObject, Addr: p.addr, Proof: evidence.FromCore,
			Summary: fmt.Sprintf("%s %v is %s", p.name, p.addr, offsetWords(p.addr, &o))}})
	}
	return err
}

// usedFreed adds the freed object whose fill the program took for a pointer.
func (c *collection) usedFreed(a *analysis, w *filled) {
	f := &heapFinding{object: &w.object, rank: rankFailure}
	f.Kind, f.Proof = evidence.FindingUseAfterFree, a.result.Failure.Proof
	f.Addr, f.Size = w.object.Addr, int(min(w.object.Size, 1<<31))
	f.Summary = fmt.Sprintf("use after free: a pointer was read from %s at %v", sized(&w.object), w.object.Addr)
	f.Facts = append(f.Facts, evidence.Fact{Name: "pointer", Text: fmt.Sprintf("%s held %v, by which the agent marks the memory of this object after its free", w.pointer.name, w.pointer.addr)})
	if w.cell != 0 {
		f.Facts = append(f.Facts, evidence.Fact{Name: "read from", Text: fmt.Sprintf("%v, offset %d of the object", w.cell, w.cell-w.object.Addr)})
	}
	if w.offset != 0 {
		f.Facts = append(f.Facts, evidence.Fact{Name: "added", Text: fmt.Sprintf("%d, as for a member", w.offset)})
	}
	if w.object.State == agent.Live {
		f.Facts = append(f.Facts, evidence.Fact{Name: "reused", Text: "the memory was handed out again since; the object that was freed is not known"})
	}
	c.list = append(c.list, f)
}
