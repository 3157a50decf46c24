package heapjudge

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// Summary summarizes one heap and checks it. Its methods are called in this order:
// CountObjects, CheckObjects, ListSites.
type Summary struct {
	// MostSites bounds the allocation sites listed; 0 lists all.
	MostSites int
	// NameThreads, if set, is called before any thread is named.
	NameThreads func() error

	// Out is the summary, and Limits describe what it could not cover.
	Out    evidence.Heap
	Limits []evidence.Limit

	heap *Heap
	// siteCounts are the sites by their numbers.
	siteCounts []agent.SiteCount
}

// NewSummary begins the summary of a heap.
func NewSummary(h *Heap) *Summary {
	return &Summary{heap: h, NameThreads: func() error { return nil }, Out: evidence.Heap{AgentHeap: &evidence.AgentHeap{}}}
}

// CountObjects sums up all objects.
func (s *Summary) CountObjects() {
	t := s.heap.Summarize(0)
	h := &s.Out
	h.Threads = s.heap.Threads()
	h.Allocations, h.Frees = t.Allocations, t.Frees
	h.LiveObjects, h.LiveBytes = t.Live, t.LiveBytes
	h.Quarantined, h.QuarantinedBytes = t.Quarantined+t.Reusable, t.QuarantinedBytes+t.ReusableBytes
	h.MappedBytes, h.MetadataBytes = t.MappedBytes, t.MetadataBytes
	h.Sites = []evidence.HeapSite{}
	s.siteCounts = t.Sites
	if err := gapsError("the summary is not complete", t.Gaps); err != nil {
		s.Limits = append(s.Limits, evidence.Limit{Code: evidence.LimitHeapUnread, Reason: err.Error(), Severe: true}.Worded())
	}
}

// CheckObjects collects the damaged objects, and the errors that were found
// while the program ran.
func (s *Summary) CheckObjects() error {
	err := s.heap.ReadErrors()
	if len(s.heap.errors) > 0 {
		err = cmp.Or(err, s.NameThreads())
	}
	c := &collection{heap: s.heap}
	err = cmp.Or(err, c.judgeHeap())
	if len(c.list) > 0 {
		err = cmp.Or(err, s.NameThreads())
	}
	s.Out.Findings = c.complete(summarizedFindings)
	s.Out.Errors, s.Out.Damaged = uint64(len(s.heap.errors)+s.heap.more), c.damaged
	s.Limits = append(s.Limits, c.limits...)
	return err
}

// ListSites joins the sites with equal stacks, which the agent distinguishes by
// their stack depth, and names those with most live bytes.
func (s *Summary) ListSites() error {
	groups, err := s.joinedSites()
	slices.SortStableFunc(groups, func(x, y *agent.SiteCount) int {
		return cmp.Or(cmp.Compare(y.LiveBytes, x.LiveBytes), cmp.Compare(y.Live, x.Live), cmp.Compare(freedBytes(y), freedBytes(x)))
	})
	if n := s.MostSites; n > 0 && len(groups) > n {
		s.Out.Elided = len(groups) - n
		groups = groups[:n]
	}
	for _, g := range groups {
		site := evidence.HeapSite{LiveObjects: g.Live, LiveBytes: g.LiveBytes, Quarantined: g.Quarantined + g.Reusable,
			QuarantinedBytes: freedBytes(g), Largest: g.Largest}
		if call := s.heap.call(g.Call, image.MakesMemory); call != nil {
			site.Allocated = *call
		} else {
			site.Allocated.Stack.Frames = []evidence.Frame{}
		}
		s.Out.Sites = append(s.Out.Sites, site)
	}
	return err
}

func freedBytes(c *agent.SiteCount) uint64 { return c.QuarantinedBytes + c.ReusableBytes }

// joinedSites adds up the counts of sites whose return addresses are the same.
func (s *Summary) joinedSites() ([]*agent.SiteCount, error) {
	var list []*agent.SiteCount
	var err error
	unread := 0
	byStack := map[string]*agent.SiteCount{}
	for i := range s.siteCounts {
		c := &s.siteCounts[i]
		key, keyErr := s.stackKey(c.Call.Site)
		if keyErr != nil {
			unread++
			err = cmp.Or(err, keyErr)
		}
		g := byStack[key]
		if g == nil {
			byStack[key] = c
			list = append(list, c)
			continue
		}
		if g.Call.Thread != c.Call.Thread {
			g.Call.Thread = 0
		}
		addCount(&g.Count, &c.Count)
	}
	if err != nil {
		err = fmt.Errorf("heap: %s could not be read, the first: %w", wording.Count(uint64(unread), "allocation site"), err)
	}
	return list, err
}

func addCount(to, c *agent.Count) {
	to.Live += c.Live
	to.LiveBytes += c.LiveBytes
	to.Quarantined += c.Quarantined
	to.QuarantinedBytes += c.QuarantinedBytes
	to.Reusable += c.Reusable
	to.ReusableBytes += c.ReusableBytes
	to.Largest = max(to.Largest, c.Largest)
}

func (s *Summary) stackKey(site uint32) (string, error) {
	if site == 0 {
		return "", nil
	}
	pcs, err := s.heap.Site(site)
	if err != nil {
		return fmt.Sprint(site), err
	}
	key := make([]byte, 0, 8*len(pcs))
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint64(key, uint64(pc))
	}
	return string(key), nil
}
