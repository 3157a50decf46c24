package heapjudge

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
)

// relatedAddresses are the addresses that the failure concerns. judged: it is the
// failure of the examined thread.
func (x *Explanation) relatedAddresses(judged bool) []evidence.Addr {
	var list []evidence.Addr
	if x.cell != 0 {
		list = append(list, x.cell)
	}
	if x.filled != nil {
		list = append(list, x.filled.object.Addr)
	}
	if x.failure.Fault != nil && judged {
		for _, p := range x.faultPointers() {
			list = append(list, p.addr)
		}
	}
	return list
}

// addPointed adds the objects that the pointers of the failing instruction and
// the bad value's cell point into or near.
func (c *collection) addPointed(x *Explanation) error {
	if w := x.filled; w != nil {
		c.addFilled(w, x.failure.Proof)
	}
	f := x.failure
	if f.Fault == nil {
		return nil
	}
	var err error
	seen := map[evidence.Addr]bool{}
	pointers := x.faultPointers()
	slices.Reverse(pointers) // the failing address says more than its parts
	if x.cell != 0 {
		pointers = append(pointers, pointer{"the bad value's memory at", x.cell})
	}
	for _, p := range pointers {
		near, found, errNear := c.heap.Nearest(p.addr)
		err = cmp.Or(err, errNear)
		if !found || errNear != nil {
			continue
		}
		o := near.Object
		rank := rankPointer
		if p.addr == f.Fault.Addr && x.faulted != nil {
			o, rank = *x.faulted, rankFailure
		}
		if seen[o.Addr] || x.filled != nil && x.filled.object.Addr == o.Addr {
			continue
		}
		seen[o.Addr] = true
		c.list = append(c.list, &heapFinding{object: &o, rank: rank, Finding: evidence.Finding{
			Kind: evidence.FindingHeapObject, Addr: p.addr, Proof: evidence.FromCore,
			Summary: fmt.Sprintf("%s %v is %s", p.name, p.addr, offsetWords(p.addr, &o))}})
	}
	return err
}

// addFilled adds the freed object whose fill the program used as a pointer.
func (c *collection) addFilled(w *filled, proof evidence.Proof) {
	f := &heapFinding{object: &w.object, rank: rankFailure}
	f.Kind, f.Proof = evidence.FindingUseAfterFree, proof
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
