package replay_test

import (
	"path/filepath"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/record"
	"diagnose/replay"
)

// experiment records one of testdata/experiment.
func experiment(t *testing.T, name string) *record.Recording {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("../testdata/experiment", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, p.Record(t).Dir)
}

// TestFreeAsRecorded: what may leave the recorded way and has no reason to does
// not.
func TestFreeAsRecorded(t *testing.T) {
	for _, p := range recordtest.Programs(t, "../testdata/experiment") {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			rec := open(t, p.Record(t).Dir)
			strict, err := replay.Run(t.Context(), rec, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r, err := replay.Run(t.Context(), rec, replay.Options{Free: true})
				if err != nil {
					t.Fatal(err)
				}
				if r.Left != nil {
					t.Errorf("left the recorded way: %v", r.Left)
				}
				if r.End != strict.End || r.Signal != strict.Signal || r.Status != strict.Status || r.Moment != strict.Moment || r.MadeUp != 0 {
					t.Errorf("ended with %s, %d, %d at %v, want %s, %d, %d at %v; %d results made up", r.End, r.Signal, r.Status, r.Moment,
						strict.End, strict.Signal, strict.Status, strict.Moment, r.MadeUp)
				}
			}
		})
	}
}
