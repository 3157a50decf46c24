package instrument_test

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/agent"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// TestSignalsAtPoints interrupts code with points, and hunts at the same time, where
// signals meet threads that are at one.
func TestSignalsAtPoints(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := instrumented(t, compilersFirst(t), filepath.Join(programs, "interrupted.c"), "-O1")
	library := recordtest.Library(t)
	for seed := uint64(0); seed < 6; seed++ {
		o := recorder.Options{Path: exe, Args: []string{exe}, Library: library, Output: t.TempDir(), All: true,
			Environ: agent.RecordEnvironment(os.Environ(), library, nil), Warn: func(text string) { t.Log(text) }}
		if seed > 0 {
			o.Hunt = &record.Hunt{Strategy: record.HuntRandom, Seed: seed, Length: 10000, Chance: 1 << 13, Processor: -1}
		}
		r, err := recorder.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Status.Signaled() {
			t.Fatalf("seed %d: it ended with %v", seed, r.Status)
		}
		if seed > 0 && pointsOf(t, r.Dir) == 0 {
			t.Errorf("seed %d: no preemption at a point", seed)
		}
		recordtest.Identical(t, r.Dir, 2)
	}
}
