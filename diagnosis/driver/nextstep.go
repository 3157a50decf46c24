package driver

import (
	"diagnose/evidence"
	"diagnose/image"
)

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
	next := &evidence.Next{Tool: evidence.NextRecord, Reason: evidence.NextForValue, Need: needOf(a.process)}
	switch {
	case f.Kind == evidence.Deadlock:
		next.Tool, next.Reason = evidence.NextHunt, evidence.NextForLocks
	case misuseOfHeap[f.Kind] && a.heap == nil:
		next.Tool, next.Reason = evidence.NextRun, evidence.NextForHeap
	case len(a.process.Threads) > 1:
		next.Tool, next.Reason = evidence.NextRepeat, evidence.NextForOrder
	}
	return next
}

// needOf is what the agent and the recorder need that the program is not.
func needOf(p *image.Process) evidence.NextNeed {
	switch {
	case p.Musl():
		return evidence.NeedGlibc
	case p.Static():
		return evidence.NeedDynamicLinking
	}
	return ""
}
