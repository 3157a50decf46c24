package driver

import (
	"strings"
	"testing"
	"time"

	"diagnose/canary/heapjudge"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
)

// A recording whose schedule was not found is best made again with all of it recorded, rather than given more time; one that has it already is not.
func TestNextAfterSchedule(t *testing.T) {
	for _, x := range []struct {
		limits []evidence.Limit
		turns  *record.Turns
		want   string
	}{
		{[]evidence.Limit{{Code: evidence.LimitSchedule}}, nil, "diagnose record --races=turns "},
		{[]evidence.Limit{{Code: evidence.LimitSchedule}}, &record.Turns{}, "diagnose crash "},
		{nil, nil, "diagnose crash "},
	} {
		a := newAnalysis(Request{Recordings: []string{"run"}, Time: time.Minute})
		a.process = &image.Process{Threads: make([]image.Thread, 2)}
		a.failing = []*record.Recording{{Manifest: &record.Manifest{Turns: x.turns}}}
		a.result.Limits = x.limits
		a.result.Diagnosis = &evidence.Diagnosis{Coverage: evidence.Coverage{Limits: []evidence.Limit{{Code: evidence.LimitTime}}}}
		if got, why := newAdvice(&a.req, &a.recordings, a.result, a.process).next(false); !strings.HasPrefix(got, x.want) || why == "" {
			t.Errorf("%+v, turns %v: %s", x.limits, x.turns, got)
		}
	}
}

// A plain core ends with the step that tells more of its failure, if there is one.
func TestNextStep(t *testing.T) {
	const one, several = 1, 3
	for _, x := range []struct {
		kind    evidence.FailureKind
		threads int
		want    evidence.NextTool
	}{
		{evidence.NullPointer, one, evidence.NextRecord}, {evidence.AssertionFailure, one, evidence.NextRecord}, {evidence.StackSmashing, one, evidence.NextRecord},
		{evidence.NullPointer, several, evidence.NextRepeat}, {evidence.AssertionFailure, several, evidence.NextRepeat},
		{evidence.HeapCorruption, one, evidence.NextRun}, {evidence.InvalidFree, several, evidence.NextRun},
		{evidence.Deadlock, several, evidence.NextHunt},
		{evidence.KilledBySignal, one, ""}, {evidence.NoFailure, several, ""}, {evidence.StackOverflow, one, ""}, {evidence.GoPanic, several, ""},
	} {
		a := newAnalysis(Request{Core: "core"})
		a.process = &image.Process{Threads: make([]image.Thread, x.threads)}
		a.result.Failure.Kind = x.kind
		got := a.nextStep()
		if (got == nil) != (x.want == "") || got != nil && got.Tool != x.want {
			t.Errorf("%s, %d threads: %+v, not %q", x.kind, x.threads, got, x.want)
		}
		a.failing = []*record.Recording{{}}
		if got := a.nextStep(); got != nil {
			t.Errorf("%s with a recording: %+v", x.kind, got)
		}
	}
	a := newAnalysis(Request{Core: "core"})
	a.process, a.heap = &image.Process{Threads: make([]image.Thread, one)}, &heapjudge.Explanation{}
	a.result.Failure.Kind = evidence.UseAfterFree
	if got := a.nextStep(); got == nil || got.Tool != evidence.NextRecord {
		t.Errorf("with the agent: %+v", got)
	}
}
