package driver

import "diagnose/evidence"

// misuseOfHeap are failures by which a heap shows that its memory was misused before.
var misuseOfHeap = map[evidence.FailureKind]bool{evidence.HeapCorruption: true, evidence.HeapOverflow: true, evidence.HeapUnderflow: true,
	evidence.UseAfterFree: true, evidence.DoubleFree: true, evidence.InvalidFree: true, evidence.MismatchedFree: true}

// complete are failures of which another run would tell no more, or nothing that can be recorded.
var complete = map[evidence.FailureKind]bool{evidence.KilledBySignal: true, evidence.NoFailure: true, evidence.GoPanic: true, evidence.StackOverflow: true,
	evidence.BadSystemCall: true, evidence.ExitStatus: true, evidence.DeclaredFailure: true, evidence.UnknownFailure: true}

// nextStep is the step that tells more of a failure of a plain core; nil where there is a recording, or nothing more to learn.
func (a *analysis) nextStep() *evidence.Next {
	f := &a.result.Failure
	if len(a.failing) > 0 || a.req.PID != 0 || complete[f.Kind] || len(a.result.Goroutines) > 0 {
		return nil
	}
	switch {
	case f.Kind == evidence.Deadlock:
		return &evidence.Next{Tool: evidence.NextHunt, Reason: evidence.NextForLocks}
	case misuseOfHeap[f.Kind] && a.heap == nil:
		return &evidence.Next{Tool: evidence.NextRun, Reason: evidence.NextForHeap}
	case len(a.process.Threads) > 1:
		return &evidence.Next{Tool: evidence.NextRepeat, Reason: evidence.NextForOrder}
	}
	return &evidence.Next{Tool: evidence.NextRecord, Reason: evidence.NextForValue}
}
