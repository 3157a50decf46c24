package canary

import (
	"cmp"
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// HeapOptions are the options of a HeapCheck. The zero value is useful.
type HeapOptions struct {
	// Workers is the number of parallel workers; 0 is one per processor.
	Workers int
	// Limit bounds the damaged objects that are returned; 0 is 100.
	Limit int
}

// HeapResult is what a HeapCheck found.
type HeapResult struct {
	// Damages in address order, of the damaged objects with the lowest
	// addresses; Further counts the other damaged objects.
	Damages []Damage
	Further int
	// Checked counts the objects whose canaries were compared, Unread those
	// that could not be read.
	Checked, Unread uint64
	// Limits describe the parts that were not judged, and why.
	Limits []evidence.Limit
}

// HeapCheck compares the canaries after all live objects, before live large
// ones, and before the first slots of spans. It reads each once, and holds one
// chunk per worker.
type HeapCheck struct {
	heap    *agent.Heap
	workers []heapWorker
}

// NewHeapCheck begins a check of a heap. Each batch of one scan goes to Visit, and the
// scan's gaps to Result.
func NewHeapCheck(h *agent.Heap, options HeapOptions) *HeapCheck {
	if options.Limit <= 0 {
		options.Limit = 100
	}
	c := &HeapCheck{heap: h, workers: make([]heapWorker, agent.Workers(options.Workers))}
	for i := range c.workers {
		c.workers[i] = heapWorker{heap: h, reader: h.NewReader(), Tally: agent.Tally{Damaged: agent.Lowest{Limit: options.Limit}}}
	}
	return c
}

// Visit checks a batch.
func (c *HeapCheck) Visit(worker int, b *agent.Batch) error { return c.workers[worker].visit(b) }

// Result describes the damaged objects. gaps are those of the scan.
func (c *HeapCheck) Result(gaps agent.Gaps) *HeapResult {
	all := &c.workers[0].Tally
	for i := range c.workers[1:] {
		all.Join(&c.workers[i+1].Tally)
	}
	result := &HeapResult{Checked: all.Checked, Unread: all.Unread}
	for _, o := range all.Damaged.Objects() {
		list, err := describe(c.heap, &o)
		if err != nil {
			gaps.Add(err)
		}
		result.Damages = append(result.Damages, list...)
	}
	result.Further = all.Damaged.Dropped
	result.Limits = limits(gaps, result.Unread)
	return result
}

// CheckHeap is a HeapCheck with a scan of its own.
func CheckHeap(h *agent.Heap, options HeapOptions) *HeapResult {
	c := NewHeapCheck(h, options)
	return c.Result(h.Scan(len(c.workers), c.Visit))
}

func limits(gaps agent.Gaps, unread uint64) []evidence.Limit {
	if gaps.Count == 0 {
		return nil
	}
	text := fmt.Sprintf("the canaries of %d objects of the heap could not be read", unread)
	if unread == 0 {
		text = fmt.Sprintf("the heap could not be walked in %d places", gaps.Count)
	}
	return []evidence.Limit{evidence.Limit{Code: evidence.LimitHeapUnread, Count: unread, Reason: fmt.Sprintf("%s: %v", text, gaps.First[0]), Severe: true}.Worded()}
}

// heapWorker checks batches.
type heapWorker struct {
	heap   *agent.Heap
	reader *agent.Reader
	agent.Tally
}

func (w *heapWorker) visit(b *agent.Batch) error {
	if b.Span.Large() {
		return w.large(b)
	}
	front, err := w.frontGuard(b)
	choose := func(i int) agent.Range {
		if b.State(i) != agent.Live {
			return agent.Range{}
		}
		o := b.Object(i)
		if o.Canary().Len() < agent.MinCanary {
			w.Unread++
			err = fmt.Errorf("the slot at %v cannot hold an object of %d bytes and its canary", o.Slot, o.Size)
			return agent.Range{}
		}
		return o.Canary()
	}
	unread, readErr := w.reader.Slots(b, choose, func(i int, at evidence.Addr, p []byte) {
		w.Checked++
		if !agent.Stands(at, p, b.CanaryWord(w.heap, i)) && (i > 0 || !front) {
			w.Damaged.Add(b.Object(i))
		}
	})
	w.Unread += uint64(unread)
	return cmp.Or(err, readErr)
}

// frontGuard checks the canary before the first slot, and reports whether it is
// damaged. It reports nothing if that slot was never allocated: then no code
// can have written below it.
func (w *heapWorker) frontGuard(b *agent.Batch) (damaged bool, err error) {
	if b.First > 0 || b.State(0) == agent.Fresh {
		return false, nil
	}
	guard := b.Span.Guard()
	p, err := w.reader.Read(guard)
	if err != nil {
		return false, err
	}
	if agent.Stands(guard.Start, p, b.CanaryWord(w.heap, 0)) {
		return false, nil
	}
	w.Damaged.Add(b.Object(0))
	return true, nil
}

func (w *heapWorker) large(b *agent.Batch) error {
	if b.State(0) != agent.Live {
		return nil
	}
	o := b.Object(0)
	before, behind, err := w.heap.Guards(&o)
	for _, guard := range []agent.Range{before, behind} {
		if err != nil {
			break
		}
		var p []byte
		if p, err = w.reader.Read(guard); err == nil && !agent.Stands(guard.Start, p, b.CanaryWord(w.heap, 0)) {
			w.Damaged.Add(o)
			break
		}
	}
	if err != nil {
		w.Unread++
		return err
	}
	w.Checked++
	return nil
}
