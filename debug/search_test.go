package debug_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"diagnose/debug"
	"diagnose/debug/debugtest"
	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
)

// backwards returns all stops before the end, the last one first. The session leaves marks wherever it may, after replays of so long.
func backwards(t *testing.T, rec *record.Recording, halts debug.Halts, after time.Duration) (list []evidence.Moment) {
	t.Helper()
	s := openWith(t, rec, replay.Common{})
	s.LeaveMarksAfter(after)
	if err := s.Go(debug.Position{End: true}); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := s.Backward(halts)
		if errors.Is(err, debug.ErrBegin) {
			break
		} else if err != nil {
			t.Fatalf("after %v: %v", list, err)
		}
		m, err := s.Moment()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	if marks, used := s.Marks(); (after == 0) != (marks > 0 && used > len(list)) {
		t.Errorf("%d marks, used %d times for %d stops", marks, used, len(list))
	}
	return list
}

// The last stops before a position are those that one replay from the start shows, where the recording is watched in parts, from mark to
// mark: stores by instructions and by the recording library at an event where a part begins, in two threads, and breakpoints.
func TestSearchInParts(t *testing.T) {
	debugtest.NeedsWatches(t)
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			rec := recorded(t, "stores.c", level)
			core := coreOf(t, rec)
			word := func(name string) replay.Watch {
				return replay.Watch{Addr: symbol(t, core, name), Size: 4, Writes: true}
			}
			for name, halts := range map[string]debug.Halts{
				"instructions": {Watches: []replay.Watch{word("stored")}},
				"library":      {Watches: []replay.Watch{word("got")}},
				"both":         {Watches: []replay.Watch{word("got"), word("stored")}},
				"breakpoint":   {Breakpoints: []evidence.Addr{symbol(t, core, "place")}},
				"all":          {Watches: []replay.Watch{word("got")}, Breakpoints: []evidence.Addr{symbol(t, core, "place")}},
			} {
				from := backwards(t, rec, halts, time.Hour)
				if parts := backwards(t, rec, halts, 0); !slices.Equal(parts, from) || len(parts) < 6 {
					t.Errorf("%s: %v\nfrom the start %v", name, parts, from)
				}
			}
		})
	}
}

// A long way backwards says what it does. An interruption ends it, at any time, and leaves the session where it was; the next way is not affected.
func TestInterruptedSearch(t *testing.T) {
	debugtest.NeedsWatches(t)
	rec := recorded(t, "stores.c", "-O0")
	core := coreOf(t, rec)
	halts := debug.Halts{Watches: []replay.Watch{{Addr: symbol(t, core, "stored"), Size: 4, Writes: true}}}
	s := openWith(t, rec, replay.Common{})
	s.TellEvery(time.Millisecond)
	for wanted := 1; ; wanted *= 2 { // the news after which the way is interrupted
		told := 0
		s.OnProgress(func(text string) {
			if told++; told == wanted {
				s.Interrupt()
			}
		})
		at := s.Position()
		_, err := s.Backward(halts)
		if err == nil {
			if wanted == 1 {
				t.Error("the way was not interrupted")
			}
			break
		}
		if !errors.Is(err, debug.ErrInterrupted) || !s.Position().End || !at.End {
			t.Fatalf("after %d news: %v, at %+v", wanted, err, s.Position())
		}
	}
	s.OnProgress(nil)
	s.Interrupt() // nothing is on its way
	if _, err := s.Backward(halts); err != nil {
		t.Error(err)
	}
}
