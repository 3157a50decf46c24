package driver

import (
	"errors"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// A stage's error names its subject. The limit must not name it twice.
func TestStageErrorSaysWhereOnce(t *testing.T) {
	_, _, scanErr := staticscan.Run(staticscan.Input{Process: &image.Process{}}, staticscan.Options{})
	_, originErr := staticscan.Origin(staticscan.Input{}, staticscan.OriginOptions{})
	for subject, err := range map[string]error{"scan": scanErr, "bad value": originErr, "part": errors.New("part 7: broken")} {
		if err == nil {
			t.Fatalf("%s: no error", subject)
		}
		a := &draft{result: &evidence.Case{}}
		a.runStage("scan", func() error { return err })
		if n := len(a.result.Limits); n != 1 {
			t.Fatalf("%d limits", n)
		}
		if text := a.result.Limits[0].Text; strings.Count(text, subject) != 1 || strings.Contains(text, "origin:") {
			t.Errorf("%q does not say %q once", text, subject)
		}
	}
}

// A process without the agent has no heap, and no error.
func TestNoAgent(t *testing.T) {
	a := newAnalysis(Request{})
	a.result.Failure.Kind = evidence.Abort
	if err := a.heapFindings(); err != nil || a.result.Findings != nil {
		t.Errorf("%v, %v", err, a.result.Findings)
	}
}
