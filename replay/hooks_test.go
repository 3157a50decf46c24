package replay

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// TestOrderHooks: hooks are in the order of their events, and many of them cost no more than the
// schedule and themselves.
func TestOrderHooks(t *testing.T) {
	var schedule eventlog.Schedule
	var hooks []Hook
	const runs = 50_000
	for i := range runs {
		schedule = append(schedule, eventlog.Turn{Thread: uint32(1 + i%2), Events: 2})
	}
	for thread := uint32(2); thread > 0; thread-- { // in another order
		for n := runs; n > 0; n-- {
			hooks = append(hooks, Hook{At: evidence.Moment{Thread: thread, Ordinal: uint64(n)}})
		}
	}
	sorted, err := orderHooks(schedule, hooks)
	if err != nil || len(sorted) != 2*runs {
		t.Fatalf("%d hooks, %v", len(sorted), err)
	}
	for i, h := range sorted {
		if want := (evidence.Moment{Thread: uint32(1 + i/2%2), Ordinal: uint64(i/4*2 + i%2 + 1)}); h.At != want {
			t.Fatalf("hook %d is at %v, want %v", i, h.At, want)
		}
	}
	for _, at := range []evidence.Moment{{Thread: 1, Ordinal: runs + 1}, {Thread: 3, Ordinal: 1}, {Thread: 1}} {
		if _, err := orderHooks(schedule, append(slices.Clone(hooks[:3]), Hook{At: at})); err == nil {
			t.Errorf("%v is no moment of the recording", at)
		}
	}
}
