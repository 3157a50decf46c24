package ask

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// chronicle is what the log says of the recording as a whole.
type chronicle struct {
	events  uint64
	threads map[uint32]*threadFacts
	// from and until are the positions of the question's moments: the number of events done by then.
	from, until uint64
	cut         error
	// spinning are the spin locks: a log of accesses does not say for certain which thread has one.
	spinning map[evidence.Addr]bool
}

type threadFacts struct {
	tid    int
	start  evidence.Addr
	events uint64
}

// readChronicle reads the log once, and checks the question's moments.
func readChronicle(rec *record.Recording, q *Question) (*chronicle, error) {
	c := &chronicle{threads: map[uint32]*threadFacts{}, spinning: map[evidence.Addr]bool{}}
	for e, err := range rec.Log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			c.cut = err
			break
		}
		if err != nil {
			return nil, err
		}
		c.event(e, q)
	}
	for _, x := range []struct {
		moment *evidence.Moment
		found  uint64
	}{{q.From, c.from}, {q.Until, c.until}} {
		if x.moment != nil && x.found == 0 {
			return nil, c.noMoment(x.moment)
		}
	}
	if q.From != nil && q.Until != nil && (c.from > c.until || c.from == c.until && q.From.PC != 0 && q.Until.PC == 0) {
		return nil, &Error{Asked: q.From.String(), Problem: fmt.Sprintf("this moment is not before %v", q.Until)}
	}
	return c, nil
}

func (c *chronicle) event(e *eventlog.Event, q *Question) {
	c.events++
	t := c.thread(e.Thread)
	t.events++
	switch {
	case e.Kind == eventlog.KindSpin:
		c.spinning[evidence.Addr(e.Object)] = true
	case e.Kind == eventlog.KindCreate && e.Result == 0 && len(e.Args) > 2:
		c.thread(uint32(e.Object)).start = evidence.Addr(e.Args[2])
	case e.Kind == eventlog.KindStart && len(e.Args) > 1:
		t.tid = int(e.Args[1])
	}
	if m := q.From; m != nil && m.Thread == e.Thread && m.Ordinal == e.Ordinal {
		c.from = c.events
	}
	if m := q.Until; m != nil && m.Thread == e.Thread && m.Ordinal == e.Ordinal {
		c.until = c.events
	}
}

func (c *chronicle) thread(n uint32) *threadFacts {
	t := c.threads[n]
	if t == nil {
		t = &threadFacts{}
		c.threads[n] = t
	}
	return t
}

func (c *chronicle) noMoment(m *evidence.Moment) error {
	if t := c.threads[m.Thread]; t != nil {
		return &Error{Asked: m.String(), Problem: fmt.Sprintf("there is no such moment: thread %d has %d events", m.Thread, t.events)}
	}
	return &Error{Asked: m.String(), Problem: fmt.Sprintf("there is no such moment: the recording has %d threads", len(c.threads))}
}

// refs names the threads.
func (c *chronicle) refs(p *image.Process) []evidence.ThreadRef {
	var list []evidence.ThreadRef
	for n, t := range c.threads {
		ref := evidence.ThreadRef{Number: int(n), TID: t.tid}
		if n == 1 {
			ref.Start = "main"
		} else if p != nil && t.start != 0 {
			if s, found := p.SymbolAt(t.start); found {
				ref.Start = image.CanonicalName(s.Name)
			}
		}
		list = append(list, ref)
	}
	slices.SortFunc(list, func(a, b evidence.ThreadRef) int { return cmp.Compare(a.Number, b.Number) })
	return list
}
