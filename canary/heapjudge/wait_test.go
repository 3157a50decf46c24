package heapjudge

import (
	"testing"

	"diagnose/evidence"
)

// A wait for a lock in a freed object is the use of that object; a wait for one in a live object, for
// one that is in none, or for the end of a thread, is not.
func TestExplainWait(t *testing.T) {
	s := newScene()
	waiter := evidence.ThreadRef{Number: 1, TID: 100, Name: "worker"}
	site := &evidence.Site{Function: "take", File: "take.c", Line: 7}
	for _, x := range []struct {
		what   evidence.WaitKind
		object evidence.Addr
		freed  bool
	}{
		{evidence.WaitMutex, s.freed, true},
		{evidence.WaitRWLock, s.freed + 8, true},
		{evidence.WaitMutex, s.live, false},
		{evidence.WaitMutex, s.last + 40, false}, // after the object
		{evidence.WaitMutex, 0x1000, false},
		{evidence.WaitThreadExit, s.freed, false},
	} {
		j := s.explain(t, evidence.Failure{Kind: evidence.Deadlock, Proof: evidence.FromCore})
		found, err := j.ExplainWait(&evidence.WaitEdge{Waiter: waiter, What: x.what, Object: x.object, Site: site}, true)
		if err != nil {
			t.Fatal(err)
		}
		if (found != nil) != x.freed || (j.failure.Kind == evidence.UseAfterFree) != x.freed {
			t.Errorf("%s at %v: finding %+v, failure %v", x.what, x.object, found, j.failure.Kind)
		}
		if found == nil {
			continue
		}
		if err := found.Check(); err != nil {
			t.Error(err)
		}
		if found.Kind != evidence.FindingUseAfterFree || found.Object == nil || found.Object.Addr != s.freed || found.Object.Freed == nil || j.failure.Site != site {
			t.Errorf("%s at %v: finding %+v, failure %+v", x.what, x.object, found, j.failure)
		}
	}
}
