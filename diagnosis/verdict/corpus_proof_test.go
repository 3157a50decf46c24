package verdict_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/causetest"
)

// TestNotProved gives failing runs alone to the whole tool, of which nothing but
// passing ones can tell what should have been: what helps the run to its end is no
// proof then.
func TestNotProved(t *testing.T) {
	for _, x := range []struct {
		program, level string
		says           string // why an experiment does not count; empty: there is none
	}{
		// With the argument "1" the program gives up before it prints a month.
		{"index_argument", "O2", "it ended too soon to tell: it came to print_month"},
		// A pointer that is null: any that can be read would do.
		{"hoisted_slots", "O2", ""},
		{"uninitialised_stack", "O0", ""},
	} {
		t.Run(x.program, func(t *testing.T) {
			c, err := causetest.Read("../../internal/testdata/cause/" + x.program + ".c")
			if err != nil {
				t.Fatal(err)
			}
			c.Level = x.level
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			result, err := driver.Crash(ctx, driver.Request{Recordings: []string{c.Failing(t).Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			if result.Diagnosis == nil || len(result.Diagnosis.Causes) == 0 {
				t.Fatalf("there is no cause; limits: %v", result.Limits)
			}
			cause := &result.Diagnosis.Causes[0]
			if !c.IsKind(cause.Kind) || cause.Proof != evidence.Replayed {
				t.Errorf("%s, %s: %s", cause.Kind, cause.Proof, cause.Summary)
			}
			if len(cause.Experiments) == 0 || !cause.Experiments[0].Expect || !cause.Experiments[0].Agrees() {
				t.Fatalf("the recorded run did not fail again: %+v", cause.Experiments)
			}
			changes := cause.Experiments[1:]
			if x.says == "" && len(changes) > 0 {
				t.Errorf("changed: %+v", changes)
			}
			if x.says != "" && !slices.ContainsFunc(changes, func(e evidence.Experiment) bool {
				return !e.Expect && !e.Agrees() && e.Failed == 0 && strings.HasPrefix(e.Undecided, x.says)
			}) {
				t.Errorf("no experiment says %q: %+v", x.says, changes)
			}
		})
	}
}
