package verdict

import (
	"testing"

	"diagnose/evidence"
)

// TestLeadsOf: without a passing run only an experiment makes an order a cause.
func TestLeadsOf(t *testing.T) {
	helps, fails := evidence.Experiment{Runs: 1}, evidence.Experiment{Runs: 1, Failed: 1, Expect: true, Control: true}
	causes := []evidence.Cause{
		{Proof: evidence.Replayed, Experiments: []evidence.Experiment{fails, helps}},
		{Proof: evidence.Replayed, Experiments: []evidence.Experiment{fails}},
		{Proof: evidence.Inferred},
		{Proof: evidence.Proved},
	}
	leadsOf(causes)
	for i, want := range []evidence.OpenEnd{"", evidence.OpenUntested, evidence.OpenUntested, ""} {
		if causes[i].Open != want {
			t.Errorf("cause %d is open by %q, want %q", i, causes[i].Open, want)
		}
	}
}
