package debug_test

import (
	"testing"
	"time"

	"diagnose/debug"
	"diagnose/debug/debugtest"
	"diagnose/evidence"
	"diagnose/replay"
)

// Steps backwards in a long loop without an event begin at marks in the loop. They are those that replays from the start make.
func TestMarksInLoop(t *testing.T) {
	debugtest.NeedsWatches(t)
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			rec := recorded(t, "long.c", level)
			var want []evidence.Moment
			for _, after := range []time.Duration{time.Hour, 0} {
				s := openWith(t, rec, replay.Common{})
				s.LeaveMarksAfter(after)
				var steps []evidence.Moment
				for range 12 {
					if _, err := s.BackStep(1); err != nil {
						t.Fatal(err)
					}
					m, err := s.Moment()
					if err != nil {
						t.Fatal(err)
					}
					steps = append(steps, m)
				}
				if want == nil {
					want = steps
					continue
				}
				for i := range want {
					if steps[i] != want[i] {
						t.Errorf("step %d leads to %v, and to %v from the start", i+1, steps[i], want[i])
					}
				}
				if marks, used := s.Marks(); marks < 3 || used < 10 {
					t.Errorf("%d marks, of which %d replays began", marks, used)
				}
				far := want[0]
				far.Count /= 2
				if err := s.Go(debug.PositionOf(far)); err != nil {
					t.Fatal(err)
				}
				if m, err := s.Moment(); err != nil || m != far {
					t.Errorf("%v %v, not %v", m, err, far)
				}
			}
		})
	}
}
