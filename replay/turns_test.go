package replay_test

import (
	"errors"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// TestTurns is TestIdentity where threads take turns.
func TestTurns(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/record") {
		t.Run(p.Name, func(t *testing.T) {
			if p.Never != "" {
				t.Skip(p.Never)
			}
			r := recordTurns(t, p)
			if p.Varies != "" {
				recordtest.Reaches(t, r.Dir, times)
				return
			}
			recordtest.Identical(t, r.Dir, times)
		})
	}
}

// recordTurns records a program. A recording of which a replay does not find the instruction at which a turn ended is made again, twice at
// most: on a busy machine some are so (docs/recording-identity.md has the rate), and all replays of one alike.
func recordTurns(t *testing.T, p *recordtest.Program) (r *recordtest.Recorded) {
	t.Helper()
	for range 3 {
		r = p.RecordTurns(t, 1)
		_, err := recordtest.Replay(t.Context(), r.Dir)
		var d *replay.DivergenceError
		if !errors.As(err, &d) || d.Expected == nil || d.Expected.Kind != eventlog.KindPoint {
			return r
		}
		t.Log("recorded again: ", err)
	}
	return r
}
