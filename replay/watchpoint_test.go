package replay_test

import (
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
	"diagnose/record"
	"diagnose/replay"
)

// watched is a program of testdata/trace, recorded, with what its comments say:
//
//	// WATCH: word 8, buffer+8 4    what to watch
//	// LEAST: 60                    there are at least so many accesses
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
	source := filepath.Join("..", "testdata", "trace", name+".c")
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
func (w *watched) hits(t *testing.T, o replay.Options) []replay.Hit {
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
	return hits
}

// seen is what a reference has of hits.
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

var tracePrograms = []string{"kinds", "loops", "threads", "input", "handler"}

func TestWatchesAgainstSingleSteps(t *testing.T) {
	for _, name := range tracePrograms {
		t.Run(name, func(t *testing.T) {
			w := recordWatched(t, name)
			want := reference(t, w.exe, w.program.Stdin, w.main, w.low, w.high, w.watches)
			if len(want) < w.least {
				t.Fatalf("the program made %d accesses, %d are expected at least", len(want), w.least)
			}
			var first []replay.Hit
			for _, backend := range []replay.Backend{replay.BackendPtrace, replay.BackendBPF} {
				t.Run(string(backend), func(t *testing.T) {
					hits := w.hits(t, replay.Options{Backend: backend})
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
		t.Fatalf("%d accesses, want %d; behind the common ones: %+v", len(got), len(want), append(slices.Clone(got[min(len(got), len(want)):]), want[min(len(got), len(want)):]...))
	}
}
