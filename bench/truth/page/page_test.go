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
	if err := Write(&b, results, 2, 1, &Earlier{}); err != nil {
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

// A page that is written again without the results of another machine keeps what it says.
func TestReadEarlier(t *testing.T) {
	held, open := ids(t)
	of := func(id mutant.ID, way ways.Way, o score.Outcome, proved, twin bool) store.Result {
		return store.Result{ID: id, Way: way, Operator: "index", Level: "O2", Score: score.Score{Outcome: o, Proved: proved}, Twin: twin, Code: store.Code{Commit: "abc+"}}
	}
	results := []store.Result{
		of(open, ways.Recording, score.Right, true, false),
		of(open, ways.Core, score.WrongProved, true, true),
		of(open, ways.Agent, score.NotReproduced, false, false),
		of(held, ways.Recording, score.Right, true, false),
		of(held, ways.Recording, score.Wrong, false, true),
	}
	var first, second strings.Builder
	if err := Write(&first, results, 4, 2, &Earlier{}); err != nil {
		t.Fatal(err)
	}
	earlier, err := ReadEarlier(first.String())
	if err != nil {
		t.Fatal(err)
	}
	if earlier.Held != 2 || len(earlier.Results) != 3 || *earlier.Of(open, ways.Core) != results[1] {
		t.Errorf("read %+v", earlier)
	}
	if err := Write(&second, earlier.Results, 4, 2, earlier); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("the page became\n%s\nwas\n%s", second.String(), first.String())
	}
	var fresh strings.Builder
	if err := Write(&fresh, append(earlier.Results, results[3:]...), 4, 2, &Earlier{HoldOut: holdOutHeading, Held: 1}); err != nil {
		t.Fatal(err)
	}
	if fresh.String() != first.String() {
		t.Errorf("the hold-out was judged whole, and the page is\n%s", fresh.String())
	}
	for _, bad := range []string{"| a | 1 | x | index | O2 | core | wrong | abc |\n", "| a | 1 | 2 |\n", "| a | 1 | 2 | index | O2 | core | wrong, perhaps | abc |\n"} {
		if _, err := ReadEarlier(mutantsHeading + bad); err == nil {
			t.Errorf("%q was read", bad)
		}
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
