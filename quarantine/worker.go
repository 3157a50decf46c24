package quarantine

import (
	"cmp"
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// worker checks batches and parts of rings.
type worker struct {
	heap   *agent.Heap
	reader *agent.Reader
	agent.Tally
}

// entries checks objects that a ring lists.
func (w *worker) entries(list []agent.Freed) error {
	var first error
	for _, e := range list {
		if err := w.entry(e); err != nil {
			w.Unread++
			first = cmp.Or(first, err)
		}
	}
	return first
}

func (w *worker) entry(e agent.Freed) error {
	o, found, err := w.reader.Lookup(e.Object)
	switch {
	case err != nil:
		return err
	case !found || o.Addr != e.Object:
		return fmt.Errorf("a quarantine lists %v, where no object begins", e.Object)
	case o.State == agent.Reusable:
		return nil // it is leaving; the scan sees it
	case o.State != agent.Quarantined || o.Large:
		return fmt.Errorf("a quarantine lists the object at %v, which is %v", e.Object, o.State)
	}
	o.Freed = e.By
	return w.object(o)
}

// object checks one object.
func (w *worker) object(o agent.Object) error {
	fill := w.heap.Fill(&o)
	p, err := w.reader.Read(fill)
	if err != nil {
		return err
	}
	w.compare(o, fill.Start, p)
	return nil
}

func (w *worker) compare(o agent.Object, at evidence.Addr, p []byte) {
	w.Checked++
	if !agent.Stands(at, p, w.heap.FillWordOf(&o)) {
		w.Damaged.Add(o)
	}
}

// batch checks the objects that are listed by no ring: those that wait for
// reuse, and large ones.
func (w *worker) batch(b *agent.Batch) error {
	if b.Span.Large() {
		if !b.Span.Freed() {
			return nil
		}
		err := w.object(b.Object(0))
		if err != nil {
			w.Unread++
		}
		return err
	}
	choose := func(i int) agent.Range {
		if b.State(i) != agent.Reusable {
			return agent.Range{}
		}
		o := b.Object(i)
		return w.heap.Fill(&o)
	}
	unread, err := w.reader.Slots(b, choose, func(i int, at evidence.Addr, p []byte) {
		w.compare(b.Object(i), at, p)
	})
	w.Unread += uint64(unread)
	return err
}
