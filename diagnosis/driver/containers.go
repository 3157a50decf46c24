package driver

import (
	"diagnose/canary/containerjudge"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image/ptmalloc"
)

// containerUse explains the failure by an element that a container of the C++ library does not have.
func (a *analysis) containerUse() error {
	f := &a.result.Failure
	if a.thread == nil || a.bystander() || f.Signal == nil || f.Kind == evidence.StackSmashing {
		return nil
	}
	u := containerjudge.Use(containerjudge.Input{Process: a.process, Thread: a.thread, Failure: f, Frames: failure.Frames(a.judged()),
		Blame: a.blame, Freed: a.freedObject})
	if u == nil {
		return nil
	}
	found := evidence.Finding{Kind: evidence.FindingContainer, Summary: containerjudge.Summary(u), Container: u, Site: f.Site,
		Threads: []evidence.ThreadRef{a.thread.Ref}, Proof: evidence.Inferred}
	a.result.Findings = append(said([]evidence.Finding{found}), a.result.Findings...)
	a.names.Container = containerjudge.Clause(u) // the heap's words have the free
	a.resay()
	return nil
}

// freedObject is the freed object of the heap at an address; nil: there is none that is known.
func (a *analysis) freedObject(at evidence.Addr) *containerjudge.Freed {
	if a.heap != nil {
		o := a.heapObjectAt(at)
		if o == nil || o.State == evidence.HeapLive || at < o.Addr || uint64(at-o.Addr) >= max(o.Size, 1) {
			return nil
		}
		return &containerjudge.Freed{Addr: o.Addr, Size: o.Size, Call: o.Freed}
	}
	heap, err := ptmalloc.Open(a.process)
	if err != nil {
		return nil // another heap, or one of which too little is known
	}
	b, ok := heap.At(at)
	if !ok || b.Free.List == "" || at < b.User() {
		return nil
	}
	return &containerjudge.Freed{Addr: b.User(), Size: b.UserSize()}
}
