package page

import (
	"math"
	"strings"
	"testing"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// ids returns one mutant of the hold-out and one that is not.
func ids(t *testing.T) (held, open mutant.ID) {
	t.Helper()
	for seed := range uint64(200) {
		id := mutant.ID{Package: "program", Version: "1", Seed: seed}
		if id.HoldOut() {
			held = id
		} else {
			open = id
		}
	}
	if held.Package == "" || open.Package == "" {
		t.Fatal("200 seeds are all of one part")
	}
	return held, open
}

func TestWrite(t *testing.T) {
	held, open := ids(t)
	results := []store.Result{
		{ID: open, Way: ways.Recording, Operator: "index", Level: "O2", Score: score.Score{Outcome: score.Right, Proved: true}, Code: store.Code{Commit: "abc"}},
		{ID: open, Way: ways.Core, Operator: "index", Level: "O2", Score: score.Score{Outcome: score.NotReproduced}, Twin: true, Code: store.Code{Commit: "def"}},
		{ID: held, Way: ways.Core, Operator: "secret", Level: "O0", Score: score.Score{Outcome: score.WrongProved, Proved: true}, Code: store.Code{Commit: "abc"}},
	}
	var b strings.Builder
	if err := Write(&b, results, 2, 1); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"2 mutants fail, 1 of them in the hold-out. 2 were judged.",
		"| core | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 1 | def |",
		"| core | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | abc |",
		"| index | O2 | recording | right first, proved | abc |",
		"| core | not reproduced, false alarm | def |",
		"1 causes are said to be proved, 1 of them wrongly",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("the table tells of a mutant of the hold-out")
	}
}

// The values are those of the rule of three and of tables.
func TestUpperBound(t *testing.T) {
	for _, test := range []struct {
		k, n int
		want float64
	}{{0, 600, 0.00498}, {0, 59, 0.0495}, {1, 10, 0.3942}, {5, 100, 0.1023}, {3, 3, 1}} {
		if got := UpperBound(test.k, test.n); math.Abs(got-test.want) > 0.0002 {
			t.Errorf("%d of %d: %.4f, want %.4f", test.k, test.n, got, test.want)
		}
	}
}
