package causetest

import (
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/record"
)

func TestMain(m *testing.M) { Main(m) }

// TestCases sees that each case is what its comments say: it fails and passes
// when it should, recordings of both are replayed to the same state, and the twin
// does not fail.
func TestCases(t *testing.T) {
	for _, c := range Some(Cases(t, "../../testdata/cause")) {
		t.Run(c.String(), func(t *testing.T) {
			if c.Search != "" {
				t.Skip(c.Search)
			}
			for _, kind := range []runKind{failing, passing} {
				if ended := c.twin(t, kind); ended.how != passes {
					t.Errorf("the fixed twin, run to %s, ended with %s: %s", kind, ended.how, ended.says)
				}
			}
			fails := c.Failing(t)
			if k := fails.Manifest.Outcome.Kind; k != record.OutcomeSignal && k != record.OutcomeExit {
				t.Errorf("the failing recording says of its end: %s", k)
			}
			recordtest.Identical(t, fails.Dir, 3)
			recordtest.Identical(t, c.Passing(t, 1)[0].Dir, 1)
		})
	}
}
