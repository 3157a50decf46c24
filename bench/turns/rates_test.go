package main

import (
	"math"
	"testing"
)

// TestVerdict: fewer failures in turns are a miss only where that is no accident.
func TestVerdict(t *testing.T) {
	for _, x := range []struct {
		f      failures
		chance float64 // a sum of fractions of binomial coefficients, in whole numbers
		want   string
	}{
		{failures{runs: 100, alone: 0, turns: 3}, 1, unseen},
		{failures{runs: 100, alone: 5, turns: 5}, 0.6257, reached},
		{failures{runs: 100, alone: 5, turns: 4}, 0.5, undecided},
		{failures{runs: 100, alone: 6, turns: 0}, 0.0143, missed},
		{failures{runs: 20, alone: 20, turns: 16}, 0.0530, undecided},
		{failures{runs: 20, alone: 20, turns: 15}, 0.0236, missed},
	} {
		if got := x.f.chance(); x.want != unseen && math.Abs(got-x.chance) > 0.001 {
			t.Errorf("%+v: chance %.4f, want %.4f", x.f, got, x.chance)
		}
		if got := x.f.verdict(); got != x.want {
			t.Errorf("%+v: %s, want %s", x.f, got, x.want)
		}
	}
}
