package driver

import (
	"slices"

	"diagnose/canary/stackjudge"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

// overrunArray names the array whose contents continue over the return address, a saved register or the guard of its
// frame. It follows the scan, whose names for the failure would replace the sentence. With a recording the
// replays tell which store it was.
func (a *analysis) overrunArray() error {
	f := &a.result.Failure
	if a.thread == nil || a.bystander() || f.Signal == nil || len(a.failing) > 0 {
		return nil
	}
	w := waitReader{&a.stoppedProcess, &a.recordings}
	in := stackjudge.Input{Process: a.process, Thread: a.thread, Failure: f, Frames: failure.Frames(a.judged()),
		Code: guardReader{&a.stoppedProcess}.functionCode, StackName: w.stackVariable}
	if o := stackjudge.Overrun(in); o != nil {
		a.tellOverrun(o)
		return nil
	}
	guard := slices.IndexFunc(a.result.Findings, func(x evidence.Finding) bool { return x.Kind == evidence.FindingStackGuard })
	if guard >= 0 {
		in.Guard = a.result.Findings[guard].Addr
		a.result.Findings[guard].Overrun = stackjudge.Overrun(in)
	}
	return nil
}

// tellOverrun makes the failure that of a smashed stack.
func (a *analysis) tellOverrun(o *evidence.StackOverrun) {
	f := &a.result.Failure
	found := evidence.Finding{Kind: evidence.FindingStackSmashing, Summary: stackjudge.Summary(o), Addr: o.WordAddr, Size: 8,
		Threads: []evidence.ThreadRef{a.thread.Ref}, Overrun: o, Proof: evidence.Inferred}
	if len(o.Writers) == 1 && o.Writers[0].Writes {
		found.Site = &o.Writers[0].Site
	}
	f.Kind, f.Proof = evidence.StackSmashing, evidence.Inferred
	f.Sentence, f.MessageInSentence = evidence.Say("stack smashing: "+found.Summary), false
	a.result.Findings = append(said([]evidence.Finding{found}), a.result.Findings...)
}
