package replay_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/replay"
)

// TestPagesLeaveNoTrace: the process ends as it was recorded, although pages of it were protected,
// and an inspection sees the program's own protection.
func TestPagesLeaveNoTrace(t *testing.T) {
	for _, name := range []string{"input", "threads", "handler"} {
		t.Run(name, func(t *testing.T) {
			w := recordWatched(t, name)
			at := w.watches[0].Addr
			looked := false
			inspect := map[uint64]func(*replay.Hit, *replay.Stopped) error{1: func(_ *replay.Hit, s *replay.Stopped) error {
				p, err := s.Process()
				if err != nil {
					return err
				}
				m := p.MappingAt(at)
				looked = m != nil && strings.HasPrefix(m.Perms, "rw")
				return nil
			}}
			hits, result := w.traced(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPages, Inspect: inspect}, Verify: true})
			if len(hits) < w.least || result.Backend != replay.BackendPages {
				t.Errorf("%d accesses by %s, %d are expected at least", len(hits), result.Backend, w.least)
			}
			if !looked || !result.Comparison.Identical() {
				t.Errorf("inspected: %v; %+v", looked, result.Comparison.Differences)
			}
		})
	}
}

// TestPagesWrites: reads of a word of which only writes are watched fault if its page has another
// word, and are no hits.
func TestPagesWrites(t *testing.T) {
	w := recordWatched(t, "kinds")
	all := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPages}})
	w.watches[0].Writes = true
	want := 0
	for _, h := range all {
		if h.Watch != 0 || h.Kind&evidence.CodeWrite != 0 {
			want++
		}
	}
	if hits := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPages}}); len(hits) != want || want == len(all) {
		t.Errorf("%d accesses, want %d of %d", len(hits), want, len(all))
	}
	for i := range w.watches {
		w.watches[i].Writes = true
	}
	want = 0
	for _, h := range all {
		if h.Kind&evidence.CodeWrite != 0 {
			want++
		}
	}
	if hits := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPages}}); len(hits) != want {
		t.Errorf("%d writes, want %d", len(hits), want)
	}
}
