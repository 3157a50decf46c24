package nightly

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"diagnose/reports/tracker"
)

// unreachable is a tracker that is down.
type unreachable struct{}

func (unreachable) Name() string { return "down" }

func (unreachable) Upsert(context.Context, *tracker.Report) (tracker.Result, error) {
	return tracker.Result{}, &tracker.Error{Kind: tracker.Down, Tracker: "down", Err: errors.New("no answer")}
}

// A tracker is told of each cause once, of what came since once a night, and one that
// is down costs nothing.
func TestTrack(t *testing.T) {
	c, _ := filled(t, failure{what: "ok", cause: "copy", ago: time.Hour}, failure{what: "ok", cause: "free", ago: 2 * time.Hour})
	dir := t.TempDir()
	track := func(tr tracker.Tracker, issues int, dry bool) *Summary {
		t.Helper()
		s := summary(t, c, night1(t, options(c)))
		if err := s.Track(t.Context(), c, TrackOptions{Tracker: tr, New: issues, DryRun: dry}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	open := func(dry bool) tracker.Tracker {
		tr, err := tracker.Open("dir:"+dir, tracker.Options{DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	s := track(unreachable{}, 9, false)
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil || len(s.New) != 2 || !strings.Contains(text.String(), "no answer") {
		t.Errorf("%s%v", text.String(), err)
	}
	if k := track(open(true), 9, true).Tracking; len(k.Issues) != 2 || k.Issues[0].Action != tracker.Opened || k.Issues[0].Issue != "" {
		t.Errorf("%+v", k)
	}
	if k := track(open(false), 1, false).Tracking; len(k.Issues) != 1 || k.Later != 1 {
		t.Errorf("%+v", k)
	}
	if k := track(open(false), 1, false).Tracking; len(k.Issues) != 1 || k.Issues[0].Action != tracker.Opened || k.Later != 0 {
		t.Errorf("%+v", k)
	}
	put(t, c, 3, failure{what: "ok", cause: "copy"})
	if k := track(open(false), 1, false).Tracking; len(k.Issues) != 0 { // the night is not over
		t.Errorf("%+v", k)
	}
}
