// Package quarantine judges writes to freed memory: a pure
// function of a memory image and the agent's heap in it.
//
// The agent fills the first bytes of a freed object with a word that names it,
// and the fill stays until the object is handed out again. Bytes that differ
// were written after the free.
package quarantine

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// Options of a check. The zero value is useful.
type Options struct {
	// Workers check at the same time; 0 is one a processor.
	Workers int
	// Limit bounds the damages that are returned; 0 is 100.
	Limit int
}

// Damage is a freed object whose fill was overwritten.
type Damage struct {
	// Object is the freed object, with Freed if that is still known.
	Object agent.Object
	// Damage has offsets relative to Object. The fill covers the slot, so that
	// it may begin after the object's end.
	Damage evidence.Damage
	// Before is the object in the slot before, if the damage begins with the
	// first byte: then it may have overflowed instead. nil when there is none.
	Before *agent.Object
	// Beyond is the object in the next slot, if the damage goes up to that and
	// leaves Object's own bytes alone: then it may have underflowed instead. nil
	// when there is none.
	Beyond *agent.Object
}

// Result is what a check found.
type Result struct {
	// Damages in address order: those with the lowest addresses; Further counts
	// the others.
	Damages []Damage
	Further int
	// Checked counts the objects whose fill was compared, Unread those that
	// could not be read.
	Checked, Unread uint64
	// Limits name the objects that were not judged, and the reason.
	Limits []evidence.Limit
}

// HeapCheck compares the fill of all freed objects: of those in quarantine, which
// their rings list, of those that wait for reuse, and of large ones. A slot
// whose word says that it is in quarantine and that no ring lists is in the
// middle of a call, and is not judged.
type HeapCheck struct {
	heap    *agent.Heap
	workers []worker
	gaps    agent.Gaps // of the rings
}

// NewHeapCheck begins a check of a heap and checks what the rings list. Each batch
// of one scan goes to Visit, and the scan's gaps to Result.
func NewHeapCheck(h *agent.Heap, options Options) *HeapCheck {
	if options.Limit <= 0 {
		options.Limit = 100
	}
	c := &HeapCheck{heap: h, workers: make([]worker, agent.Workers(options.Workers))}
	for i := range c.workers {
		c.workers[i] = worker{heap: h, reader: h.NewReader(), Tally: agent.Tally{Damaged: agent.Lowest{Limit: options.Limit}}}
	}
	c.gaps = h.Quarantine(len(c.workers), func(i int, entries []agent.Freed) error { return c.workers[i].entries(entries) })
	return c
}

// Visit checks a batch.
func (c *HeapCheck) Visit(worker int, b *agent.Batch) error { return c.workers[worker].batch(b) }

// Result describes the damaged objects. scan are the gaps of the scan.
func (c *HeapCheck) Result(scan agent.Gaps) *Result {
	gaps := c.gaps
	gaps.Join(scan)
	all := &c.workers[0].Tally
	for i := range c.workers[1:] {
		all.Join(&c.workers[i+1].Tally)
	}
	result := &Result{Checked: all.Checked, Unread: all.Unread}
	for _, o := range all.Damaged.Objects() {
		d, err := describe(c.heap, &o)
		if err != nil {
			gaps.Add(err)
			continue
		}
		if d != nil {
			result.Damages = append(result.Damages, *d)
		}
	}
	result.Further = all.Damaged.Dropped
	result.Limits = limits(gaps, result.Unread)
	return result
}

// Check is a HeapCheck with a scan of its own.
func Check(h *agent.Heap, options Options) *Result {
	c := NewHeapCheck(h, options)
	return c.Result(h.Scan(len(c.workers), c.Visit))
}

func limits(gaps agent.Gaps, unread uint64) []evidence.Limit {
	if gaps.Count == 0 {
		return nil
	}
	text := fmt.Sprintf("%d freed objects of the heap could not be read", unread)
	if unread == 0 {
		text = fmt.Sprintf("the freed objects of the heap could not be listed in %d places", gaps.Count)
	}
	return []evidence.Limit{evidence.Limit{Code: evidence.LimitHeapUnread, Count: unread, Reason: fmt.Sprintf("%s: %v", text, gaps.First[0]), Severe: true}.Worded()}
}

func describe(h *agent.Heap, o *agent.Object) (*Damage, error) {
	fill := h.Fill(o)
	damage, err := h.Damage(o, fill, h.FillWordOf(o))
	if damage == nil || err != nil {
		return nil, err
	}
	damage.Reaches = damage.End == fill.End
	d := &Damage{Object: *o, Damage: *damage}
	switch {
	case damage.Start == o.Addr:
		before, found, err := h.Preceding(o)
		if found && !before.Guarded {
			d.Before = &before
		}
		return d, err
	case damage.Start >= o.End() && damage.End == o.SlotEnd:
		beyond, found, err := h.Following(o)
		if found && !o.Guarded {
			d.Beyond = &beyond
		}
		return d, err
	}
	return d, nil
}
