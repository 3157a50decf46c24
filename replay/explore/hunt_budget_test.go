package explore

import (
	"testing"
	"time"
)

// Runs are begun only as long as those that must follow fit into the budget, by the longest one so
// far. A run that did not end says nothing of that.
func TestHuntBudget(t *testing.T) {
	h := newHunt(HuntOptions{Budget: time.Minute}, time.Now())
	if !h.fits(withRecordings) {
		t.Error("nothing has run, and no more runs fit")
	}
	h.noteTime(&ran{took: 10 * time.Second})
	h.noteTime(&ran{took: time.Second})
	h.noteTime(&ran{took: time.Hour, hung: true})
	if !h.fits(6) || h.fits(7) {
		t.Errorf("of 10 seconds each, 6 runs fit into 66 seconds: %v; 7: %v", h.fits(6), h.fits(7))
	}
	h = newHunt(HuntOptions{Budget: time.Second}, time.Now().Add(-time.Second))
	h.noteTime(&ran{took: 100 * time.Millisecond})
	m := &minimiser{hunt: h, ctx: t.Context(), until: time.Now().Add(longestMinimising)} // without a runner: a run would fail
	if fails, err := m.fails(nil); fails || err != nil || !m.full {
		t.Errorf("the budget is spent, and a schedule was tried: %v, %v, full %v", fails, err, m.full)
	}
	if list, ok, err := m.passing(nil); list != nil || ok || err != nil {
		t.Errorf("the budget is spent, and a passing schedule was looked for: %v, %v, %v", list, ok, err)
	}
}
