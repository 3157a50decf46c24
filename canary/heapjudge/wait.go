package heapjudge

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// ExplainWait is the finding of a thread that waits for a lock or the like in a freed object: no thread releases a lock that is
// gone. decides: the process failed by this wait; then the failure is set to the use of the object. nil: the object is in
// no freed memory. The error says that the heap, or the free of the object, cannot be read.
func (x *Explanation) ExplainWait(e *evidence.WaitEdge, decides bool) (*evidence.Finding, error) {
	if e.What == evidence.WaitThreadExit {
		return nil, nil // its word is the C library's
	}
	near, found, err := x.heap.Nearest(e.Object)
	if err != nil || !found || near.Where != agent.Inside || near.Object.State == agent.Live || near.Object.State == agent.Fresh {
		return nil, err
	}
	o := &near.Object
	err = x.heap.findFrees(o)
	object := x.heap.Object(o)
	waiter := e.Waiter
	name := fmt.Sprintf("the %s %v", e.What, e.Object)
	if e.Name != "" {
		name = fmt.Sprintf("the %s %s", e.What, e.Name)
	}
	waits := fmt.Sprintf("thread %d waits for %s, which is in %s", waiter.Number, name, sized(o))
	if decides {
		f := x.failure
		f.Kind, f.Proof, f.Thread, f.Message, f.Instruction = evidence.UseAfterFree, evidence.FromCore, &waiter, "", nil
		if e.Site != nil {
			f.Site, f.Source = e.Site, nil
		}
		x.Words = &Words{What: "use after free", Why: joined(waits, lifeWords(object))}
	}
	return &evidence.Finding{Kind: evidence.FindingUseAfterFree, Summary: waits, Addr: o.Addr, Size: int(min(o.Size, 1<<31)), Object: object,
		Threads: []evidence.ThreadRef{waiter}, Site: e.Site, Wait: []evidence.WaitEdge{*e}, Proof: evidence.FromCore}, err
}
