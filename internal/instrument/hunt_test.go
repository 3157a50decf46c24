package instrument_test

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder"
)

// TestHunted has every strategy preempt threads at points of the code: each finds
// the race that needs one between two accesses, and a recording of such a run is
// replayed as it was.
func TestHunted(t *testing.T) {
	exe := instrumented(t, compilersFirst(t), filepath.Join(programs, "race.c"), "-O1")
	library := recordtest.Library(t)
	for _, strategy := range []record.HuntStrategy{record.HuntPCT, record.HuntRandom, record.HuntDelay} {
		t.Run(string(strategy), func(t *testing.T) {
			const most = 60
			for seed := uint64(1); seed <= most; seed++ {
				r, err := recorder.Run(t.Context(), recorder.Options{Path: exe, Args: []string{exe}, Library: library, Output: t.TempDir(), All: true,
					Environ: agent.RecordEnvironment(os.Environ(), library, nil), Warn: func(text string) { t.Log(text) },
					Hunt: &record.Hunt{Strategy: strategy, Seed: seed, Depth: 3, Length: 65, Chance: 1 << 14, Processor: -1}})
				if err != nil {
					t.Fatal(err)
				}
				if !r.Status.Signaled() {
					continue
				}
				if pointsOf(t, r.Dir) == 0 {
					t.Errorf("seed %d: it failed without a preemption at a point", seed)
				}
				recordtest.Identical(t, r.Dir, 2)
				return
			}
			t.Errorf("none of %d schedules failed", most)
		})
	}
}

// TestKeptAtPoint ends a process while a thread is preempted at a point: there is
// no event for that, and a replay leaves it there.
func TestKeptAtPoint(t *testing.T) {
	exe := instrumented(t, compilersFirst(t), filepath.Join(programs, "kept.c"), "-O1")
	library := recordtest.Library(t)
	kept := 0
	for seed := uint64(1); seed <= 8; seed++ {
		r, err := recorder.Run(t.Context(), recorder.Options{Path: exe, Args: []string{exe}, Library: library, Output: t.TempDir(), All: true,
			Environ: agent.RecordEnvironment(os.Environ(), library, nil), Warn: func(text string) { t.Log(text) },
			Hunt: &record.Hunt{Strategy: record.HuntRandom, Seed: seed, Length: 300, Chance: 1 << 15, Processor: -1}})
		if err != nil {
			t.Fatal(err)
		}
		recordtest.Identical(t, r.Dir, 2)
		core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(core.Threads) == 2 {
			kept++
		}
		core.Close()
	}
	if kept == 0 {
		t.Error("no second thread was left at any end")
	}
}

// pointsOf counts the preemptions in a recording at points of the code.
func pointsOf(t *testing.T, dir string) int {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	points := 0
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindPoint && e.Args[0] == agent.PointCode {
			points++
		}
	}
	return points
}
