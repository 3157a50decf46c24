package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/patterns"
)

// TestLeadOf: an experiment makes an order a cause, or runs in which it comes with the failure more often than one of the orders seen would
// by chance.
func TestLeadOf(t *testing.T) {
	helps, fails := evidence.Experiment{Runs: 1}, evidence.Experiment{Runs: 1, Failed: 1, Expect: true, Control: true}
	few, many := patterns.Candidate{FailingRuns: 1, FailingOf: 1, PassingOf: 2}, patterns.Candidate{FailingRuns: 3, FailingOf: 3, PassingOf: 20}
	for name, c := range map[string]struct {
		cause evidence.Cause
		order patterns.Candidate
		seen  int
		want  evidence.OpenEnd
	}{
		"an experiment helps":           {evidence.Cause{Proof: evidence.Replayed, Experiments: []evidence.Experiment{fails, helps}}, few, 40, ""},
		"nothing but the recorded run":  {evidence.Cause{Proof: evidence.Replayed, Experiments: []evidence.Experiment{fails}}, few, 40, evidence.OpenUntested},
		"no experiment":                 {evidence.Cause{Proof: evidence.Inferred}, few, 40, evidence.OpenUntested},
		"proved":                        {evidence.Cause{Proof: evidence.Proved}, few, 40, ""},
		"threads wait for the locks":    {evidence.Cause{Proof: evidence.Replayed}, patterns.Candidate{FailingRuns: 1, FailingOf: 1, PassingOf: 2, Waiting: true}, 40, ""},
		"many runs":                     {evidence.Cause{Proof: evidence.Replayed}, many, 40, ""},
		"many runs, and as many orders": {evidence.Cause{Proof: evidence.Replayed}, many, 400, evidence.OpenUntested},
	} {
		if leadOf(&c.cause, &c.order, c.seen); c.cause.Open != c.want {
			t.Errorf("%s: it is open by %q, want %q", name, c.cause.Open, c.want)
		}
	}
}
