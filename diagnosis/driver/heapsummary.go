package driver

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
)

// HeapOptions says what of a heap is told.
type HeapOptions struct {
	// Sites bounds the allocation sites listed; 0 lists all.
	Sites int
}

// errNoAgent is for processes of whose heap nothing is known.
var errNoAgent = errors.New("the process ran without the agent, so nothing is known of its heap: " +
	"start the program with 'diagnose run -- PROGRAM ARGUMENTS', or with LD_PRELOAD=$(diagnose agent path)")

// Heap sums up the heap of a dead or stopped process that ran with the agent,
// and checks it. Of a request what says where to read is used. The errors are
// *InputError for what cannot be analysed, a process without the agent among
// it; what could not be covered leaves a Limit. ctx is as for Crash.
func Heap(ctx context.Context, req Request, opts HeapOptions) (*evidence.Heap, error) {
	return interruptible(ctx, nil, func() (*evidence.Heap, error) { return summarize(ctx, req, opts) })
}

func summarize(ctx context.Context, req Request, opts HeapOptions) (*evidence.Heap, error) {
	a := &analysis{req: req, result: &evidence.Case{}}
	if err := a.open(); err != nil {
		return nil, err
	}
	defer a.process.Close()
	heap, err := openHeap(a.process)
	switch {
	case err != nil:
		return nil, &InputError{err}
	case heap == nil:
		return nil, &InputError{errNoAgent}
	}
	a.heap = heap
	s := &summary{analysis: a, opts: opts}
	err = a.stages(ctx, []stage{
		{"count", s.count},
		{"check", s.check},
		{"sites", s.sites},
	})
	if err != nil {
		return nil, err
	}
	a.finish()
	s.heap.Program, s.heap.Limits, s.heap.Timings = a.result.Program, a.result.Limits, a.result.Timings
	return &s.heap, nil
}

// summary carries one heap through the stages.
type summary struct {
	*analysis
	opts HeapOptions
	heap evidence.Heap
	// counted are the sites by their numbers.
	counted []agent.SiteCount
}

// count sums up all objects.
func (s *summary) count() error {
	t := s.analysis.heap.Summarize(0)
	h := &s.heap
	h.Threads = s.analysis.heap.Threads()
	h.Allocations, h.Frees = t.Allocations, t.Frees
	h.LiveObjects, h.LiveBytes = t.Live, t.LiveBytes
	h.Quarantined, h.QuarantinedBytes = t.Quarantined+t.Reusable, t.QuarantinedBytes+t.ReusableBytes
	h.MappedBytes, h.MetadataBytes = t.MappedBytes, t.MetadataBytes
	h.Sites = []evidence.HeapSite{}
	s.counted = t.Sites
	if err := gapsError("the summary is not complete", t.Gaps); err != nil {
		s.limit(evidence.Limit{Text: err.Error(), Severe: true})
	}
	return nil
}

// check gathers what is damaged, and what was found while the program ran.
func (s *summary) check() error {
	err := s.analysis.heap.readErrors()
	if len(s.analysis.heap.errors) > 0 {
		err = first(err, s.nameThreads())
	}
	c := &collection{heap: s.analysis.heap}
	err = first(err, c.collect())
	if len(c.list) > 0 {
		err = first(err, s.nameThreads())
	}
	s.heap.Findings = c.finish(summarizedFindings)
	s.heap.Errors, s.heap.Damaged = uint64(len(c.heap.errors)+c.heap.more), c.damaged
	s.limit(c.limits...)
	return err
}

// nameThreads names the threads by what they were started with. It takes a walk
// of all their stacks, seconds for a large program that stands still meanwhile:
// too long for a heap of which there is nothing to say.
func (s *summary) nameThreads() error {
	if s.walked != nil {
		return nil
	}
	return s.unwind()
}

// sites joins the sites with equal stacks, which the agent tells apart by how
// deep they were, and names those with most live bytes.
func (s *summary) sites() error {
	groups, err := s.joinedSites()
	slices.SortStableFunc(groups, func(x, y *agent.SiteCount) int {
		return cmp.Or(cmp.Compare(y.LiveBytes, x.LiveBytes), cmp.Compare(y.Live, x.Live), cmp.Compare(freedBytes(y), freedBytes(x)))
	})
	if n := s.opts.Sites; n > 0 && len(groups) > n {
		s.heap.Elided = len(groups) - n
		groups = groups[:n]
	}
	for _, g := range groups {
		site := evidence.HeapSite{LiveObjects: g.Live, LiveBytes: g.LiveBytes, Quarantined: g.Quarantined + g.Reusable,
			QuarantinedBytes: freedBytes(g), Largest: g.Largest}
		if call := s.analysis.heap.call(g.Call); call != nil {
			site.Allocated = *call
		} else {
			site.Allocated.Stack.Frames = []evidence.Frame{}
		}
		s.heap.Sites = append(s.heap.Sites, site)
	}
	return err
}

func freedBytes(c *agent.SiteCount) uint64 { return c.QuarantinedBytes + c.ReusableBytes }

// joinedSites adds up the counts of sites whose return addresses are the same.
func (s *summary) joinedSites() ([]*agent.SiteCount, error) {
	var list []*agent.SiteCount
	var err error
	unread := 0
	byStack := map[string]*agent.SiteCount{}
	for i := range s.counted {
		c := &s.counted[i]
		key, keyErr := s.stackKey(c.Call.Site)
		if keyErr != nil {
			unread++
			err = first(err, keyErr)
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
		join(&g.Count, &c.Count)
	}
	if err != nil {
		err = fmt.Errorf("heap: %s could not be read, the first: %w", count(uint64(unread), "allocation site"), err)
	}
	return list, err
}

func join(to, c *agent.Count) {
	to.Live += c.Live
	to.LiveBytes += c.LiveBytes
	to.Quarantined += c.Quarantined
	to.QuarantinedBytes += c.QuarantinedBytes
	to.Reusable += c.Reusable
	to.ReusableBytes += c.ReusableBytes
	to.Largest = max(to.Largest, c.Largest)
}

func (s *summary) stackKey(site uint32) (string, error) {
	if site == 0 {
		return "", nil
	}
	pcs, err := s.analysis.heap.Site(site)
	if err != nil {
		return fmt.Sprint(site), err
	}
	key := make([]byte, 0, 8*len(pcs))
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint64(key, uint64(pc))
	}
	return string(key), nil
}
