package replay_test

import (
	"testing"

	"diagnose/internal/recordtest"
)

// TestTurns is TestIdentity where threads take turns.
func TestTurns(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/record") {
		t.Run(p.Name, func(t *testing.T) {
			if p.Never != "" {
				t.Skip(p.Never)
			}
			r := p.RecordTurns(t, 1)
			if p.Varies != "" {
				recordtest.Reaches(t, r.Dir, times)
				return
			}
			recordtest.Identical(t, r.Dir, times)
		})
	}
}
