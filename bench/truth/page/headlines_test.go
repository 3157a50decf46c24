package page

import (
	"strings"
	"testing"

	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/evidence"
)

func TestHeadlines(t *testing.T) {
	_, open := ids(t)
	cause := func(outcome score.Outcome, basis evidence.Basis) store.Result {
		return store.Result{ID: open, Operator: "index", Level: "O2", Score: score.Score{Outcome: outcome},
			Headline: &score.Headline{Failure: evidence.NullPointer, Kind: evidence.CauseBadValue, Basis: basis, Proof: evidence.Replayed}}
	}
	silent := store.Result{ID: open, Score: score.Score{Outcome: score.Unknown}, Headline: &score.Headline{Failure: evidence.ExitStatus}}
	none := store.Result{ID: open, Score: score.Score{Outcome: score.ToolFailed}}
	var b strings.Builder
	if err := Headlines(&b, []store.Result{cause(score.Right, evidence.BasisBounds), cause(score.Wrong, evidence.BasisCount), silent, none}, "abc"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 recordings by commit abc: of 2 the report names a cause, of 1 none.",
		"| count | bad-value | replayed | no | 0 | 0 | 0 | 0 | 1 | 0 |\n| outside-object | bad-value | replayed | no | 1 | 0 | 0 | 0 | 0 | 0 |\n",
		"| outside-object | yes | 1 | 0 | 0 | 0 | 0 | 0 |\n",
		"| exit-status | 0 | 0 | 0 | 1 | 0 | 0 |\n",
		"| index | O2 | count | bad-value | replayed |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
}
