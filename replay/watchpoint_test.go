package replay_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// watched is a recorded program of testdata/trace, with the facts in its comments:
//
//	// WATCH: word 8, buffer+8 4    what to watch
//	// LEAST: 60                    the least number of accesses
type watched struct {
	rec       *record.Recording
	exe       string
	program   *recordtest.Program
	watches   []replay.Watch
	least     int
	main      uint64
	low, high uint64
}

func recordWatched(t *testing.T, name string) *watched {
	t.Helper()
	source := filepath.Join("..", "internal", "testdata", "trace", name+".c")
	p, err := recordtest.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{program: p, exe: p.Build(t)}
	r := recordtest.RecordProgram(t, w.exe, nil, p.Stdin, p.Ends)
	if w.rec, err = record.Open(r.Dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.rec.Close() })
	path, err := w.rec.Core()
	if err != nil {
		t.Fatal(err)
	}
	core, err := image.OpenCore(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	w.main = uint64(symbol(t, core, "main"))
	m := core.ModuleAt(evidence.Addr(w.main))
	w.low, w.high = uint64(m.Start), uint64(m.End)
	w.read(t, core, source)
	return w
}

func symbol(t *testing.T, p *image.Process, name string) evidence.Addr {
	t.Helper()
	s, found := p.SymbolNamed(name)
	if !found {
		t.Fatalf("there is no symbol %s", name)
	}
	return s.Addr
}

func (w *watched) read(t *testing.T, core *image.Process, source string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if least, found := strings.CutPrefix(line, "// LEAST: "); found {
			if w.least, err = strconv.Atoi(least); err != nil {
				t.Fatal(err)
			}
		}
		list, found := strings.CutPrefix(line, "// WATCH: ")
		if !found {
			continue
		}
		for item := range strings.SplitSeq(list, ", ") {
			place, size, _ := strings.Cut(item, " ")
			name, offset, _ := strings.Cut(place, "+")
			at := 0
			if offset != "" {
				at, err = strconv.Atoi(offset)
			}
			bytes, errSize := strconv.Atoi(size)
			if err != nil || errSize != nil {
				t.Fatalf("%s: %s", source, line)
			}
			w.watches = append(w.watches, replay.Watch{Addr: symbol(t, core, name) + evidence.Addr(at), Size: bytes})
		}
	}
	if len(w.watches) == 0 {
		t.Fatalf("%s says not what to watch", source)
	}
}

// hits traces a recording.
func (w *watched) hits(t *testing.T, o replay.WatchRequest) []replay.Hit {
	t.Helper()
	hits, _ := w.traced(t, o)
	return hits
}

func (w *watched) traced(t *testing.T, o replay.WatchRequest) ([]replay.Hit, *replay.Result) {
	t.Helper()
	var hits []replay.Hit
	o.Watches = w.watches
	o.OnHit = func(h *replay.Hit) error {
		hits = append(hits, *h)
		return nil
	}
	result, err := replay.Run(t.Context(), w.rec, o)
	var cannot *replay.UnsupportedError
	if errors.As(err, &cannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if result.Hits != uint64(len(hits)) || result.Lost != 0 {
		t.Fatalf("%d hits were seen; the replay says %d, and %d lost", len(hits), result.Hits, result.Lost)
	}
	for i := range hits {
		if hits[i].Number != uint64(i) {
			t.Fatalf("hit %d has the number %d", i, hits[i].Number)
		}
	}
	return hits, result
}

// seen returns hits in the form of the reference.
func (w *watched) seen(hits []replay.Hit) []seenHit {
	var list []seenHit
	for _, h := range hits {
		s := seenHit{Watch: h.Watch, Kind: h.Kind, By: h.By, Old: h.Old, New: h.New}
		if pc := uint64(h.PC); pc >= w.low && pc < w.high && h.By == evidence.ByProgram {
			s.PC = pc
		}
		list = append(list, s)
	}
	return list
}

var tracePrograms = []string{"kinds", "loops", "threads", "input", "handler", "control", "faults"}

func TestWatchesAgainstSingleSteps(t *testing.T) {
	for _, name := range tracePrograms {
		t.Run(name, func(t *testing.T) {
			w := recordWatched(t, name)
			want := reference(t, w.exe, w.program.Stdin, w.main, w.low, w.high, w.watches)
			if len(want) < w.least {
				t.Fatalf("the program made %d accesses, %d are expected at least", len(want), w.least)
			}
			var first []replay.Hit
			for _, backend := range []replay.Backend{replay.BackendPages, replay.BackendPtrace, replay.BackendBPF} {
				t.Run(string(backend), func(t *testing.T) {
					hits := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Backend: backend}})
					compareHits(t, w.seen(hits), want)
					if first == nil {
						first = hits
					}
					if !slices.Equal(hits, first) {
						i := slices.IndexFunc(hits, func(h replay.Hit) bool { return h != first[h.Number] })
						t.Errorf("hit %+v, by another back end %+v", hits[i], first[i])
					}
				})
			}
		})
	}
}

func compareHits(t *testing.T, got, want []seenHit) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("access %d of %d:\n got %+v\nwant %+v", i, len(want), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d accesses, want %d; after the common ones: %+v", len(got), len(want), append(slices.Clone(got[min(len(got), len(want)):]), want[min(len(got), len(want)):]...))
	}
}

// TestInspect: a hit is the same in every replay, and the process is stopped right after it.
func TestInspect(t *testing.T) {
	w := recordWatched(t, "loops")
	hits := w.hits(t, replay.WatchRequest{})
	inspect := map[uint64]func(*replay.Hit, *replay.Stopped) error{}
	looked := 0
	for _, n := range []uint64{0, 7, uint64(len(hits) / 2), uint64(len(hits) - 1)} {
		inspect[n] = func(h *replay.Hit, s *replay.Stopped) error {
			looked++
			var word [8]byte
			x := w.watches[h.Watch]
			if _, err := s.ReadMemory(x.Addr, word[:x.Size]); err != nil {
				return err
			}
			if *h != hits[n] || binary.LittleEndian.Uint64(word[:]) != h.New {
				t.Errorf("hit %d is %+v with % x, want %+v", n, *h, word, hits[n])
			}
			if stack, err := s.Stack(); err != nil || len(stack) == 0 {
				t.Errorf("stack %q, %v", stack, err)
			}
			return nil
		}
	}
	again := w.hits(t, replay.WatchRequest{Watching: replay.Watching{Inspect: inspect}})
	if looked != 4 || !slices.Equal(hits, again) {
		t.Errorf("%d hits were looked at, %d of %d are there again", looked, len(again), len(hits))
	}
}

func TestWatchesThatCannotBe(t *testing.T) {
	w := recordWatched(t, "input")
	var input *replay.InputError
	var registers *replay.RegisterError
	var cannot *replay.UnsupportedError
	at := w.watches[0].Addr
	four := []replay.Watch{{Addr: at, Size: 8}, {Addr: at, Size: 4}, {Addr: at, Size: 2}, {Addr: at, Size: 1}}
	for name, c := range map[string]struct {
		o      replay.WatchRequest
		target any
	}{
		"size":      {replay.WatchRequest{Watching: replay.Watching{Watches: []replay.Watch{{Addr: at, Size: 3}}}}, &input},
		"alignment": {replay.WatchRequest{Watching: replay.Watching{Watches: []replay.Watch{{Addr: at + 1, Size: 8}}}}, &input},
		"kernel":    {replay.WatchRequest{Watching: replay.Watching{Watches: []replay.Watch{{Addr: 1 << 63, Size: 8}}}}, &input},
		"five":      {replay.WatchRequest{Watching: replay.Watching{Watches: append(four, four[0])}}, &registers},
		"a moment":  {replay.WatchRequest{Common: replay.Common{Hooks: []replay.Hook{{At: evidence.Moment{Thread: 1, Ordinal: 1}}}}, Watching: replay.Watching{Watches: four}}, &registers},
		"locks":     {replay.WatchRequest{Watching: replay.Watching{Watches: four[:1], Locks: make([]replay.LockWord, replay.MostLocks+1)}}, &input},
		"back end":  {replay.WatchRequest{Watching: replay.Watching{Watches: four[:1], Backend: "sigtrap"}}, &cannot},
		"probes":    {replay.WatchRequest{Watching: replay.Watching{Watches: make([]replay.Watch, replay.MostProbed+1), Backend: replay.BackendProbe}}, &input},
	} {
		if _, err := replay.Run(t.Context(), w.rec, c.o); !errors.As(err, c.target) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHitEndsReplay: an error of OnHit ends the replay with every back end.
func TestHitEndsReplay(t *testing.T) {
	w := recordWatched(t, "loops")
	enough := errors.New("enough")
	for _, backend := range []replay.Backend{replay.BackendPages, replay.BackendPtrace, replay.BackendBPF} {
		n := 0
		_, err := replay.Run(t.Context(), w.rec, replay.WatchRequest{Watching: replay.Watching{Watches: w.watches, Backend: backend, OnHit: func(*replay.Hit) error {
			if n++; n == 20 {
				return enough
			}
			return nil
		}}})
		var cannot *replay.UnsupportedError
		if !errors.As(err, &cannot) && (!errors.Is(err, enough) || n != 20) {
			t.Errorf("%s: %v after %d hits", backend, err, n)
		}
	}
}
