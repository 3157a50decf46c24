package driver

import (
	"diagnose/diagnosis/expected"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

// expectations compares what the failing code expects with what the process has. It follows the scan, whose names and origin of
// the bad value it uses.
func (a *analysis) expectations() error {
	f := &a.result.Failure
	if a.thread == nil || a.bystander() || f.Signal == nil {
		return nil
	}
	in := expected.Input{Process: a.process, Thread: a.thread, Failure: f, Frames: failure.Frames(a.judged()), Blame: a.blame,
		Source: a.sources().around}
	expected.Division(in)
	f.LikelyNull = expected.Null(in)
	f.Class = expected.Class(in)
	f.Format = expected.NonConstant(in)
	if f.Division != nil || f.LikelyNull != nil || f.Class != nil || f.Format != nil {
		a.resay()
	}
	return nil
}

// folded is verdict.Input.Folded.
func (a *analysis) folded(site *evidence.Site, value uint64) bool {
	return expected.Folded(a.process, a.sources().around, site, value)
}
