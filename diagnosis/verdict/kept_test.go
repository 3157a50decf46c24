package verdict_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/internal/causetest"
	"diagnose/internal/crashtest"
	"diagnose/replay"
)

// TestSameFromCheckpoints makes diagnoses with and without checkpoints: the cases are the same, but for times.
func TestSameFromCheckpoints(t *testing.T) {
	crashtest.TracesAccesses(t) // a pass with protected pages begins at no checkpoint
	programs := []string{"heap_loop.c", "got_null_deep.c", "bank_transfer.c", "lock_order.c", "handled_session.c", "uaf_threads.c", "exit_turnstile.c"}
	tried, continued := 0, 0
	for _, c := range causetest.Cases(t, "../../internal/testdata/cause") {
		if !slices.Contains(programs, filepath.Base(c.Source)) {
			continue
		}
		programs = slices.DeleteFunc(programs, func(p string) bool { return p == filepath.Base(c.Source) })
		tried++
		t.Run(c.String(), func(t *testing.T) {
			dir := c.Failing(t).Dir
			crash := func(most int) string {
				ctx, kept := replay.KeepCheckpoints(t.Context(), most)
				defer kept.Close()
				x, err := driver.Crash(ctx, driver.Request{Recordings: []string{dir}, Replays: 1})
				if err != nil {
					t.Fatal(err)
				}
				if n := kept.Counts(); most == 0 && n.Continued+n.Checkpoints > 0 {
					t.Errorf("without checkpoints: %+v", n)
				} else {
					continued += n.Continued
				}
				if x.Diagnosis != nil {
					x.Diagnosis.Coverage.Nanoseconds = 0
				}
				text, err := json.MarshalIndent(x, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			crash(0) // it may write the timing into the recording
			if want, got := crash(0), crash(replay.MostKept); got != want {
				t.Errorf("from checkpoints:\n%s\nfrom the start:\n%s", got, want)
			}
		})
	}
	if tried != 7 || continued < 7 {
		t.Errorf("%d of 7 programs were tried, %d replays began at a checkpoint", tried, continued)
	}
}
