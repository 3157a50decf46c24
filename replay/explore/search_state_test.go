package explore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// A replay that ends at the recorded place in another state is not the end of a search.
func TestSearchState(t *testing.T) {
	eachFailing(t, "otherstate", func(rec *record.Recording) bool {
		plain, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Preemptions: []eventlog.Preemption{}}, Verify: true})
		if err != nil || plain.Comparison.Identical() {
			t.Logf("the recorded threads did not run at the same time: %+v, %v", plain, err)
			return false
		}
		r, reached := search(t, rec)
		if !reached {
			return false
		}
		written, err := rec.Found()
		if err != nil || written == nil || written.OtherState != r.OtherState {
			t.Fatalf("written: %+v, %v", written, err)
		}
		again, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true})
		if err != nil || again.Comparison.Identical() != (r.OtherState == 0) {
			t.Fatalf("the search says that %d parts differ; a replay: %+v, %v", r.OtherState, again, err)
		}
		return r.OtherState == 0
	})
}

// The state may need several changes of thread with no event in between, and places at which a thread
// arrives often.
func TestSearchStateChanges(t *testing.T) {
	eachFailing(t, "lostnode", func(rec *record.Recording) bool {
		r, reached := search(t, rec)
		if !reached || r.OtherState != 0 {
			return false
		}
		identical(t, rec.Dir)
		return len(r.Preemptions) > 0
	})
}

// A replay that hands another number to the kernel, from a race of long before, is compared with the core
// there.
func TestSearchStateOfDivergence(t *testing.T) {
	eachFailing(t, "counter", func(rec *record.Recording) bool {
		plain, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Preemptions: []eventlog.Preemption{}}})
		var diverged *replay.DivergenceError
		if plain == nil || !errors.As(err, &diverged) || diverged.Reason != replay.DiffersData {
			t.Fatalf("no addition is lost, so the number that is written differs: %+v, %v", plain, err)
		}
		r, reached := search(t, rec)
		if !reached || r.OtherState != 0 {
			return false
		}
		identical(t, rec.Dir)
		return true
	})
}

// A thread that spins for ever when all events are done stays where it is, so that the failing one can end.
func TestSearchForGood(t *testing.T) {
	eachFailing(t, "ring", func(rec *record.Recording) bool {
		r, err := explore.Search(t.Context(), rec, explore.Options{Budget: searchBudget, Approach: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			again, err := replay.Run(t.Context(), rec, replay.PlainRequest{})
			if r.Reproduced && (err != nil || again.End != replay.EndFailure) {
				t.Fatalf("a replay with %v: %+v, %v", r.Preemptions, again, err)
			}
		}
		return r.Reproduced && slices.ContainsFunc(r.Preemptions, func(p eventlog.Preemption) bool { return p.Until == eventlog.Never })
	})
}

// A search that may not take the time says that the state is another one.
func TestSearchStateUnsought(t *testing.T) {
	eachFailing(t, "otherstate", func(rec *record.Recording) bool {
		r, err := explore.Search(t.Context(), rec, explore.Options{Budget: searchBudget, Approach: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		written, err := rec.Found()
		if !r.Reproduced || r.OtherState == 0 || err != nil {
			return false
		}
		if written == nil || written.OtherState != r.OtherState {
			t.Errorf("written: %+v", written)
		}
		return true
	})
}
