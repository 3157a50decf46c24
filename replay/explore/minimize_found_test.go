package explore_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

func minimizeFound(t *testing.T, rec *record.Recording) *explore.FoundMinimal {
	t.Helper()
	m, err := explore.MinimizeFound(t.Context(), rec, runLimit, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.LeftOut != "" {
		t.Skip("on a machine this busy there is no time to take anything away: " + m.LeftOut)
	}
	return m
}

// Preemptions are added to those that a search found. The added ones are removed again, and
// each of the rest is needed.
func TestMinimizeFound(t *testing.T) {
	eachFailing(t, "control", func(rec *record.Recording) bool {
		r, reached := search(t, rec)
		if !reached || len(r.Preemptions) == 0 {
			return false
		}
		first := minimizeFound(t, rec)
		if len(first.Preemptions) == 0 || len(first.Preemptions) > len(r.Preemptions) || first.Passes != (first.Without != nil) ||
			!first.Passes && len(first.Otherwise) != len(first.Preemptions) {
			t.Fatalf("%d preemptions were found, and minimised: %+v", len(r.Preemptions), first)
		}
		found, err := rec.Found()
		if err != nil || found == nil || !slices.Equal(found.Preemptions, first.Preemptions) {
			t.Fatalf("written: %+v, %v", found, err)
		}
		// After its first event the main thread is alone.
		more := *found
		more.Preemptions = slices.Concat([]eventlog.Preemption{{Thread: 1, Ordinal: 1, Class: eventlog.PointEvent, Until: 1}}, found.Preemptions)
		if err := rec.SetFound(&more); err != nil {
			t.Fatal(err)
		}
		if again := minimizeFound(t, rec); !slices.Equal(again.Preemptions, first.Preemptions) || again.Before != len(first.Preemptions)+1 {
			t.Errorf("with one more: %+v", again)
		}
		return true
	})
}

// All preemptions that are not needed are removed. A recording without any is an error that
// says what to do.
func TestMinimizeFoundNothing(t *testing.T) {
	p := huntProgram(t, "hunt/lost_update.c")
	rec, err := record.Open(recordtest.RecordProgram(t, p.Build(t), nil, "", "").Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var none *explore.NoScheduleError
	if _, err := explore.MinimizeFound(t.Context(), rec, 0, image.Options{}); !errors.As(err, &none) {
		t.Fatalf("without a schedule: %v", err)
	}
	if _, err := explore.Minimize(t.Context(), rec, explore.HuntOptions{}); !errors.As(err, &none) {
		t.Fatalf("as if it were hunted: %v", err)
	}
	if _, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}}); err != nil {
		t.Skip("its threads raced, and no plain replay reaches its end: ", err)
	}
	list := []eventlog.Preemption{{Thread: 1, Ordinal: 1, Class: eventlog.PointEvent, Until: 1}, {Thread: 1, Ordinal: 2, Class: eventlog.PointEvent, Until: 2}}
	if err := rec.SetFound(&record.Found{Timing: record.TimingEager, Preemptions: list, By: "test", Level: "coarse", Partial: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := explore.MinimizeFound(t.Context(), rec, 0, image.Options{}); !errors.As(err, &none) {
		t.Fatalf("with a part of a schedule: %v", err)
	}
	if err := rec.SetFound(&record.Found{Timing: record.TimingEager, Preemptions: list, By: "test", Level: "coarse"}); err != nil {
		t.Fatal(err)
	}
	if m := minimizeFound(t, rec); len(m.Preemptions) != 0 || m.Before != 2 || m.Replays == 0 {
		t.Errorf("%+v", m)
	}
	if found, err := rec.Found(); err != nil || found == nil || len(found.Preemptions) != 0 {
		t.Errorf("written: %+v, %v", found, err)
	}
	if _, err := explore.MinimizeFound(t.Context(), rec, 0, image.Options{}); !errors.As(err, &none) || none.Dir != filepath.Clean(rec.Dir) {
		t.Fatalf("with nothing left: %v", err)
	}
}
