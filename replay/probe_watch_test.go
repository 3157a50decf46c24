package replay_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// instructionsOf returns the instructions that made accesses: a replay that probes all of them
// sees all accesses.
func instructionsOf(hits []replay.Hit) []evidence.Addr {
	var list []evidence.Addr
	for _, h := range hits {
		if h.By != evidence.ByCall && !slices.Contains(list, h.PC) {
			list = append(list, h.PC)
		}
	}
	return list
}

func TestProbesAgainstSingleSteps(t *testing.T) {
	crashtest.TracesAccesses(t)
	// For each program: whether some accesses stop, and whether some do not.
	stops := map[string]bool{"kinds": true, "loops": true, "control": true, "faults": true}
	for _, name := range tracePrograms {
		t.Run(name, func(t *testing.T) {
			w := recordWatched(t, name)
			want := reference(t, w.exe, w.program.Stdin, w.main, w.low, w.high, w.watches)
			stopped := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}})
			hits, result := w.traced(t, replay.WatchRequest{Common: replay.Common{Timing: record.TimingEager}, Watching: replay.Watching{Backend: replay.BackendProbe, Probes: instructionsOf(stopped)}, Verify: true})
			compareHits(t, w.seen(hits), want)
			for i, h := range hits {
				// The log does not say where a call was made.
				if h != stopped[i] && h.By != evidence.ByCall {
					t.Errorf("hit %+v, by stops %+v", h, stopped[i])
				}
			}
			if stops[name] != (result.Stops > 0) || result.Stops*2 > uint64(len(hits)) {
				t.Errorf("%d stops for %d accesses", result.Stops, len(hits))
			}
			if !result.Comparison.Identical() || len(result.Unprobed) > 0 || slices.Max(result.Unseen) > 0 {
				t.Errorf("%+v; unseen %v, not probed %v", result.Comparison.Differences, result.Unseen, result.Unprobed)
			}
		})
	}
}

// TestProbesFull: the process waits while the ring is full, and nothing is lost.
func TestProbesFull(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "many")
	enough := errors.New("enough")
	var probes []evidence.Addr
	_, err := replay.Run(t.Context(), w.rec, replay.WatchRequest{Watching: replay.Watching{Watches: w.watches, Backend: replay.BackendPtrace, OnHit: func(h *replay.Hit) error {
		probes = []evidence.Addr{h.PC}
		return enough
	}}})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	seen := uint64(0)
	result, err := replay.Run(t.Context(), w.rec, replay.WatchRequest{Watching: replay.Watching{Watches: w.watches, Backend: replay.BackendProbe, Probes: probes, OnHit: func(h *replay.Hit) error {
		if seen == 0 {
			time.Sleep(100 * time.Millisecond) // meanwhile it continues as far as it can
		}
		if h.Old != seen || h.New != seen+1 || h.Number != seen {
			return fmt.Errorf("hit %+v, want that of %d", h, seen+1)
		}
		seen++
		return nil
	}}})
	if err != nil || seen != uint64(w.least) || result.Hits != seen || result.Lost != 0 || result.Unseen[0] != 0 {
		t.Errorf("%d hits of %d, %v, %+v", seen, w.least, err, result)
	}
}

// TestProbesStops: a replay that may not stop so often fails with an error that says so.
func TestProbesStops(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "kinds")
	probes := instructionsOf(w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}}))
	_, err := replay.Run(t.Context(), w.rec, replay.WatchRequest{Watching: replay.Watching{Watches: w.watches, Backend: replay.BackendProbe, Probes: probes, MostStops: 2}})
	var stops *replay.StopsError
	if !errors.As(err, &stops) {
		t.Error(err)
	}
}

// TestProbesWrites: watches for writes leave reads out.
func TestProbesWrites(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, name := range []string{"loops", "input"} {
		w := recordWatched(t, name)
		probes := instructionsOf(w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}}))
		all := len(w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendProbe, Probes: probes}}))
		for i := range w.watches {
			w.watches[i].Writes = true
		}
		stopped := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}})
		hits := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendProbe, Probes: probes}})
		compareHits(t, w.seen(hits), w.seen(stopped))
		if len(hits) == 0 || len(hits) == all {
			t.Errorf("%s: %d of %d accesses", name, len(hits), all)
		}
	}
}

// TestProbesMissing: accesses of instructions without a probe are not seen, but a change by them
// is. Addresses without an instruction are reported.
func TestProbesMissing(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "loops")
	all := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}})
	list := instructionsOf(all)
	var writer evidence.Addr
	for _, h := range all {
		if h.Kind&evidence.CodeWrite != 0 && h.Old != h.New {
			writer = h.PC
		}
	}
	list = slices.DeleteFunc(list, func(pc evidence.Addr) bool { return pc == writer })
	const nowhere = 0x1000
	hits, result := w.traced(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendProbe, Probes: append(list, nowhere)}})
	var kept []replay.Hit
	for _, h := range all {
		if h.PC != writer {
			h.Number = uint64(len(kept))
			kept = append(kept, h)
		}
	}
	unseen := uint64(0)
	for _, n := range result.Unseen {
		unseen += n
	}
	if unseen == 0 || !slices.Equal(result.Unprobed, []evidence.Addr{nowhere}) {
		t.Errorf("%d changes unseen, not probed %v", unseen, result.Unprobed)
	}
	if len(hits) != len(kept) {
		t.Fatalf("%d accesses, %d are expected", len(hits), len(kept))
	}
	for i, h := range hits {
		if k := kept[i]; h.PC != k.PC || h.New != k.New || h.Kind != k.Kind || h.Position != k.Position {
			t.Fatalf("access %+v, want %+v", h, k)
		}
	}
}

// TestProbesInspected: the process is stopped right after an access, with the registers of the
// program.
func TestProbesInspected(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "loops")
	probes := instructionsOf(w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}}))
	hits := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendProbe, Probes: probes}})
	type place struct {
		moment evidence.Moment
		stack  []string
	}
	var places [2]map[uint64]place
	for i, o := range []replay.Watching{{Backend: replay.BackendProbe, Probes: probes}, {Backend: replay.BackendPtrace}} {
		places[i] = map[uint64]place{}
		o.Inspect = map[uint64]func(*replay.Hit, *replay.Stopped) error{}
		for n := uint64(0); n < uint64(len(hits)); n += 23 {
			o.Inspect[n] = func(h *replay.Hit, s *replay.Stopped) error {
				var word [8]byte
				x := w.watches[h.Watch]
				if _, err := s.ReadMemory(x.Addr, word[:x.Size]); err != nil {
					return err
				}
				if *h != hits[n] || binary.LittleEndian.Uint64(word[:]) != h.New {
					t.Errorf("hit %d is %+v with % x, want %+v", n, *h, word, hits[n])
				}
				stack, err := s.Stack()
				places[i][n] = place{s.Moment, stack}
				return err
			}
		}
		w.hits(t, replay.WatchRequest{Watching: o})
	}
	if len(places[0]) < len(hits)/23 || len(places[0]) != len(places[1]) {
		t.Errorf("%d hits were looked at, %d by stops", len(places[0]), len(places[1]))
	}
	for n, p := range places[0] {
		if s := places[1][n]; p.moment != s.moment || !slices.Equal(p.stack, s.stack) {
			t.Errorf("after hit %d there is %v %q, by stops %v %q", n, p.moment, p.stack, s.moment, s.stack)
		}
	}
}

// TestProbesMoment: a moment at an instruction that a probe has moved is reached.
func TestProbesMoment(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "loops")
	all := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}})
	probes := instructionsOf(all)
	for k := 0; k < len(probes); k += 4 {
		pc := probes[k]
		i := slices.IndexFunc(all, func(h replay.Hit) bool { return h.PC == pc })
		at := evidence.Moment{Thread: all[i].Thread, Ordinal: all[i].Ordinal, PC: pc, Count: 1}
		reached := false
		hook := replay.Hook{At: at, Do: func(s *replay.Stopped) error {
			reached = s.Moment == at
			return nil
		}}
		hits := w.hits(t, replay.WatchRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}, Watching: replay.Watching{Backend: replay.BackendProbe, Probes: probes}})
		if !reached || !slices.Equal(hits, all) {
			t.Fatalf("%v was reached: %v; %d of %d accesses", at, reached, len(hits), len(all))
		}
	}
}

// TestProbesEnd: an error of OnHit ends the replay.
func TestProbesEnd(t *testing.T) {
	crashtest.TracesAccesses(t)
	w := recordWatched(t, "loops")
	probes := instructionsOf(w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: replay.BackendPtrace}}))
	enough := errors.New("enough")
	n := 0
	_, err := replay.Run(t.Context(), w.rec, replay.WatchRequest{Watching: replay.Watching{Watches: w.watches, Backend: replay.BackendProbe, Probes: probes,
		OnHit: func(*replay.Hit) error {
			if n++; n == 20 {
				return enough
			}
			return nil
		}}})
	if !errors.Is(err, enough) || n != 20 {
		t.Errorf("%v after %d hits", err, n)
	}
}
