package agent

import (
	"cmp"
	"slices"
)

// Count sums up objects.
type Count struct {
	Live, LiveBytes uint64
	// Quarantined are freed and kept from reuse, Reusable freed and may be
	// reused any time. Bytes are what the program asked for.
	Quarantined, QuarantinedBytes uint64
	Reusable, ReusableBytes       uint64
	// Largest is the size of the largest live object.
	Largest uint64
}

func (c *Count) addObject(state State, size uint64) {
	switch state {
	case Live:
		c.Live++
		c.LiveBytes += size
		c.Largest = max(c.Largest, size)
	case Quarantined:
		c.Quarantined++
		c.QuarantinedBytes += size
	case Reusable:
		c.Reusable++
		c.ReusableBytes += size
	}
}

func (c *Count) join(other *Count) {
	c.Live += other.Live
	c.LiveBytes += other.LiveBytes
	c.Quarantined += other.Quarantined
	c.QuarantinedBytes += other.QuarantinedBytes
	c.Reusable += other.Reusable
	c.ReusableBytes += other.ReusableBytes
	c.Largest = max(c.Largest, other.Largest)
}

// SiteCount sums up the objects of one allocation site.
type SiteCount struct {
	// Call is the site and, if all of its live objects are of one thread, that
	// thread.
	Call Call
	Count
}

// Totals sums up the heap.
type Totals struct {
	Allocations, Frees uint64
	Count
	// MappedBytes is the memory mapped for objects, MetadataBytes what the
	// agent has besides.
	MappedBytes, MetadataBytes uint64
	// Sites with most live bytes first.
	Sites []SiteCount
	// Gaps is what could not be counted.
	Gaps Gaps
}

// Summarize counts all objects by allocation site. Objects of sites that do
// not exist are counted as those of unknown ones, so that the memory it takes
// is bounded by that of the sites.
func (h *Heap) Summarize(workers int) *Totals {
	tallies := make([]tally, Workers(workers))
	for i := range tallies {
		tallies[i] = tally{}
	}
	t := &Totals{MappedBytes: h.root.Objects.Mapped}
	t.Gaps = h.Scan(workers, func(worker int, b *Batch) error {
		tallies[worker].addBatch(b, uint32(min(h.root.Sites.Used, SiteMask+1)))
		return nil
	})
	all := tallies[0]
	for _, other := range tallies[1:] {
		all.join(other)
	}
	for _, s := range all {
		t.Sites = append(t.Sites, *s)
		t.join(&s.Count)
	}
	slices.SortFunc(t.Sites, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.LiveBytes, a.LiveBytes), cmp.Compare(b.Live, a.Live), cmp.Compare(a.Call.Site, b.Call.Site))
	})
	for _, w := range h.root.windows()[:5] {
		t.MetadataBytes += w.raw.Mapped
	}
	t.Gaps.Join(h.eachHeap(func(_ uint64, raw *RawHeap, _ *Gaps) {
		t.Allocations += raw.Allocations
		t.Frees += raw.Frees
	}))
	return t
}

// tally counts by site.
type tally map[uint32]*SiteCount

// addBatch counts a batch, of objects of so many sites.
func (t tally) addBatch(b *Batch, sites uint32) {
	var s *SiteCount
	for i := range b.Len() {
		state := b.State(i)
		if state == Fresh {
			continue
		}
		call := b.Call(i)
		if call.Site >= sites {
			call.Site = 0
		}
		if s == nil || s.Call.Site != call.Site {
			s = t.site(call)
		}
		if state == Live {
			s.seen(call.Thread)
		}
		s.addObject(state, b.Size(i))
	}
}

func (t tally) site(call Call) *SiteCount {
	s := t[call.Site]
	if s == nil {
		s = &SiteCount{Call: Call{Site: call.Site}}
		t[call.Site] = s
	}
	return s
}

// seen is told the thread of a live object before that is counted.
func (s *SiteCount) seen(thread uint32) {
	switch {
	case s.Live == 0:
		s.Call.Thread = thread
	case s.Call.Thread != thread:
		s.Call.Thread = 0
	}
}

func (t tally) join(other tally) {
	for site, o := range other {
		s := t[site]
		if s == nil {
			t[site] = o
			continue
		}
		if o.Live > 0 {
			s.seen(o.Call.Thread)
		}
		s.Count.join(&o.Count)
	}
}
