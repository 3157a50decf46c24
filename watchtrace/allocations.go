package watchtrace

import (
	"fmt"
	"path/filepath"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
)

// Allocations are a recording's heap objects by allocation site: in another run the same
// object may have another address, or another object this address.
type Allocations struct {
	process *image.Process
	heap    *agent.Heap
	lines   map[string][]agent.Object
}

// NewAllocations reads the heap at a recording's end. The error says why the heap is not
// known.
func NewAllocations(p *image.Process) (*Allocations, error) {
	heap, err := OpenHeap(p)
	if err != nil {
		return nil, err
	}
	return &Allocations{process: p, heap: heap, lines: map[string][]agent.Object{}}, nil
}

// allocatedBy returns the objects that a line allocated, by address, including freed ones that
// are still in memory.
func (a *Allocations) allocatedBy(s *evidence.Site) ([]agent.Object, error) {
	key := fmt.Sprintf("%s:%d", s.File, s.Line)
	if list, known := a.lines[key]; known {
		return list, nil
	}
	list, _, err := allocatedAt(a.process, a.heap, s.File, s.Line)
	if err != nil {
		return nil, err
	}
	a.lines[key] = list
	return list, nil
}

// Own returns the objects that lines of the program itself allocated, by address,
// including freed ones that are still in memory.
func (a *Allocations) Own() ([]evidence.Addr, error) {
	objects, _, err := allocatedBy(a.process, a.heap, func(line string) bool { return line != "" })
	var list []evidence.Addr
	for i := range objects {
		list = append(list, objects[i].Addr)
	}
	return list, err
}

// Same returns the address of an object in another run: the object of the same line
// with the same index by address. While no memory is reused, a single thread allocates
// in this order. The error says why there is none.
func (a *Allocations) Same(o *evidence.HeapObject, there *Allocations) (evidence.Addr, error) {
	if o.Allocated == nil || o.Allocated.Site == nil || o.Allocated.Site.File == "" {
		return 0, fmt.Errorf("where the heap object at %v was allocated is not known", o.Addr)
	}
	here, err := a.allocatedBy(o.Allocated.Site)
	if err != nil {
		return 0, err
	}
	others, err := there.allocatedBy(o.Allocated.Site)
	if err != nil {
		return 0, err
	}
	n := slices.IndexFunc(here, func(x agent.Object) bool { return x.Addr == o.Addr })
	if n < 0 {
		return 0, fmt.Errorf("the heap object at %v is not among those of its line", o.Addr)
	}
	switch {
	case n >= len(others):
		return 0, fmt.Errorf("it has no such object: %d that %s:%d allocated are in its memory at the end", len(others), filepath.Base(o.Allocated.Site.File), o.Allocated.Site.Line)
	case others[n].Size != o.Size:
		return 0, fmt.Errorf("its object of that number has %d bytes and not %d", others[n].Size, o.Size)
	}
	return others[n].Addr, nil
}
