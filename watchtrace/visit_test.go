package watchtrace_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/ptrace"
	"diagnose/watchtrace"
)

// TestVisitFromCheckpoints visits accesses in replays from checkpoints: the hits are those of replays from the start.
func TestVisitFromCheckpoints(t *testing.T) {
	continued := 0
	for name, exprs := range map[string][]string{"threads": {"turn", "counter", "flag", "shared"}, "input": {"size"}, "handler": {"depth", "seen"}} {
		t.Run(name, func(t *testing.T) {
			rec, core := recorded(t, name)
			plan, log := trace(t, rec, resolve(t, core, exprs...), watchtrace.Options{})
			ctx, kept := replay.KeepCheckpoints(t.Context(), replay.MostKept)
			defer kept.Close()
			if _, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Image: image.Options{}}}); err != nil {
				t.Fatal(err)
			}
			n := len(log.Accesses)
			for _, last := range []int{1, 2, n / 2, n - 1} {
				got, want := visited(t, ctx, plan, log, n-last), visited(t, t.Context(), plan, log, n-last)
				if !slices.Equal(got, want) || len(got) != last {
					t.Errorf("the last %d accesses are\n%+v\nwant\n%+v", last, got, want)
				}
			}
			continued += kept.Counts().Continued
		})
	}
	// Replays that trace accesses by protected pages begin at the start.
	if ptrace.DebugRegistersFire() == nil && continued < 4 {
		t.Errorf("%d replays began at a checkpoint", continued)
	}
}

// visited returns the hits of the accesses from one on, as visits see them.
func visited(t *testing.T, ctx context.Context, plan *watchtrace.Plan, log *evidence.AccessLog, from int) []replay.Hit {
	t.Helper()
	var indices []int
	for i := from; i < len(log.Accesses); i++ {
		indices = append(indices, i)
	}
	var mu sync.Mutex
	hits := map[int]replay.Hit{}
	if err := plan.Visit(ctx, log, indices, func(index int, h *replay.Hit, _ *replay.Stopped) error {
		mu.Lock()
		defer mu.Unlock()
		hits[index] = *h
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var list []replay.Hit
	for _, i := range indices {
		list = append(list, hits[i])
	}
	return list
}
