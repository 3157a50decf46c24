package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// TestFirstValue: that a program goes well with what the stack had before a variable's
// first value is no proof that this value is the cause.
func TestFirstValue(t *testing.T) {
	crashtest.TracesAccesses(t)
	p, err := recordtest.Read("../../internal/testdata/experiment/first_value.c")
	if err != nil {
		t.Fatal(err)
	}
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{p.Record(t).Dir}})
	if err != nil {
		t.Fatal(err)
	}
	if d := result.Diagnosis; d == nil || len(d.Causes) == 0 {
		t.Fatal("no cause is named")
	}
	for _, c := range result.Diagnosis.Causes {
		for _, e := range c.Experiments {
			if !e.Expect && e.Agrees() && strings.Contains(e.What, "skipped") {
				t.Errorf("%s [%s]: %v", c.Summary, c.Proof, c.Experiments)
			}
		}
	}
}
