package replay_test

import (
	"testing"

	"diagnose/internal/recordtest"
)

// TestAtomicOrder records programs whose threads communicate by atomic instructions alone. Each event of the class atomic is one
// that a replay without the order may miss.
func TestAtomicOrder(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/atomics") {
		t.Run(p.Name, func(t *testing.T) {
			r := p.RecordAtomics(t)
			rec, _ := r.Open(t)
			patched := 0
			for _, o := range rec.Manifest.Atomics.Objects {
				patched += o.Patched
			}
			if patched == 0 {
				t.Fatalf("no atomic instruction is ordered: %+v", rec.Manifest.Atomics)
			}
			recordtest.Identical(t, r.Dir, times)
		})
	}
}
