package verdict_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/causetest"
)

// Wherever the time is used up, what was found until then is told, nothing is proved
// by half an experiment, and what is missing is said.
func TestTimeIsUsedUp(t *testing.T) {
	cases := causetest.Cases(t, "../../internal/testdata/cause")
	i := slices.IndexFunc(cases, func(c *causetest.Case) bool { return c.Name == "exit_cash_book" })
	dir := cases[i].Failing(t).Dir
	const bound = time.Second
	for _, at := range []string{"stray stores: pass", "experiment: the recorded run again, replay 2", "experiment: the store skipped, replay 3"} {
		started := time.Now()
		result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{dir}, Time: bound, Progress: func(text string) {
			if strings.HasPrefix(text, at) {
				time.Sleep(bound) // the search began later than started
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Check(); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		d := result.Diagnosis
		if l := evidence.LimitOf(d.Coverage.Limits, evidence.LimitTime); l == nil || l.Time != "1s" || len(l.Names) == 0 {
			t.Errorf("%s: limits %+v", at, d.Coverage.Limits)
		}
		for _, cause := range d.Causes {
			if cause.Proof == evidence.Proved {
				t.Errorf("%s: %s is proved", at, cause.Summary)
			}
		}
		if took := time.Since(started); took > time.Minute {
			t.Errorf("%s: it went on for %v", at, took)
		}
	}
}
