package unwind

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

func TestFindCycle(t *testing.T) {
	repeat := func(n int, pcs ...evidence.Addr) []evidence.Addr { return slices.Repeat(pcs, n) }
	for name, test := range map[string]struct {
		pcs  []evidence.Addr
		want *Cycle
	}{
		"none":        {[]evidence.Addr{1, 2, 3, 4, 5}, nil},
		"twice":       {repeat(2, 1, 2), nil},
		"direct":      {repeat(50, 7), &Cycle{First: 0, Period: 1, Turns: 50}},
		"mutual":      {append([]evidence.Addr{9, 8}, repeat(10, 1, 2, 3)...), &Cycle{First: 2, Period: 3, Turns: 10}},
		"outer frame": {append(repeat(10, 1, 2), 5, 6), &Cycle{First: 0, Period: 2, Turns: 10}},
		"nested": {append(repeat(4, 1), repeat(20, 2, 2, 3)...),
			&Cycle{First: 4, Period: 3, Turns: 20}},
		"empty": {nil, nil},
	} {
		got := findCycle(test.pcs)
		if (got == nil) != (test.want == nil) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
			continue
		}
		if got != nil && (got.First != test.want.First || got.Period != test.want.Period || got.Turns != test.want.Turns) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
