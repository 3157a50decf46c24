package driver

import (
	"context"

	"diagnose/canary/heapjudge"
	"diagnose/evidence"
)

// HeapOptions says which parts of a heap are reported.
type HeapOptions struct {
	// Sites bounds the allocation sites listed, and of malloc's heap the sizes, types, objects and leaks; 0 lists all.
	Sites int
}

// Heap summarizes the heap of a dead or stopped process: the agent's, which it checks as well, or else that of
// glibc's malloc. It uses only the parts of a request that say where to read. The errors are *InputError for input
// that cannot be analysed, including a process with neither heap. A part of the heap that could not
// be covered leaves a Limit. ctx is as for Crash.
func Heap(ctx context.Context, req Request, opts HeapOptions) (*evidence.Heap, error) {
	return interruptible(ctx, nil, func() (*evidence.Heap, error) { return summarize(ctx, req, opts) })
}

func summarize(ctx context.Context, req Request, opts HeapOptions) (*evidence.Heap, error) {
	a := newAnalysis(req)
	if err := a.open(); err != nil {
		return nil, err
	}
	defer a.process.Close()
	heap, err := heapjudge.Open(a.process)
	switch {
	case err != nil:
		return nil, &InputError{err}
	case heap == nil:
		return a.summarizeMalloc(ctx, opts)
	}
	s := heapjudge.NewSummary(heap)
	s.MostSites, s.NameThreads = opts.Sites, a.nameHeapThreads
	err = a.runStages(ctx, []stage{
		{"count", func() error { s.CountObjects(); return nil }},
		{"check", s.CheckObjects},
		{"sites", s.ListSites},
	})
	if err != nil {
		return nil, err
	}
	a.completeHeap(&s.Out, s.Limits)
	return &s.Out, nil
}

// completeHeap adds what all summaries have.
func (a *analysis) completeHeap(h *evidence.Heap, limits []evidence.Limit) {
	a.limit(limits...)
	a.finish()
	h.Program, h.Limits, h.Timings = a.result.Program, a.result.Limits, a.result.Timings
}

// nameHeapThreads names the threads by the functions that they were started with. It walks all
// their stacks, which takes seconds for a large program that is stopped meanwhile: too long if
// there is nothing to report about the heap.
func (a *analysis) nameHeapThreads() error {
	if a.walked != nil {
		return nil
	}
	return a.unwind()
}
