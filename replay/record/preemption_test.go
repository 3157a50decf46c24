package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
)

func sampleFound() *Found {
	return &Found{Version: FoundVersion, Timing: TimingEager, By: "search", Attempts: 7, Level: "fine", Preemptions: []Preemption{
		{Thread: 2, Ordinal: 3, Class: PointEvent, Until: 9},
		{Thread: 1, Ordinal: 1, Class: PointPC, PC: 0x401000, Count: 2, Until: 4},
		{Thread: 2, Ordinal: 1, Class: PointCode, Count: 5, Until: 1},
	}}
}

func TestFoundIsKept(t *testing.T) {
	r := &Recording{Dir: t.TempDir()}
	if f, err := r.Found(); f != nil || err != nil {
		t.Fatalf("without a file: %v, %v", f, err)
	}
	if err := r.SetTiming(TimingLazy); err != nil {
		t.Fatal(err)
	}
	want := sampleFound()
	if err := r.SetFound(want); err != nil {
		t.Fatal(err)
	}
	got, err := r.Found()
	if err != nil || !slices.Equal(got.Preemptions, want.Preemptions) || got.By != want.By || got.Attempts != want.Attempts || got.Level != want.Level {
		t.Errorf("%+v, %v", got, err)
	}
	// The timing is the one that was found with the preemptions.
	if timing, err := r.Timing(); timing != TimingEager || err != nil {
		t.Errorf("%s, %v", timing, err)
	}
	info, err := os.Stat(filepath.Join(r.Dir, ScheduleName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(r.Dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestFoundIsChecked(t *testing.T) {
	r := &Recording{Dir: t.TempDir()}
	for name, change := range map[string]func(*Found){
		"timing":   func(f *Found) { f.Timing = "" },
		"attempts": func(f *Found) { f.Attempts = -1 },
		"by":       func(f *Found) { f.By = strings.Repeat("x", 100) },
		"thread":   func(f *Found) { f.Preemptions[0].Thread = 0 },
		"threads":  func(f *Found) { f.Preemptions[0].Thread = mostThreads },
		"ordinal":  func(f *Found) { f.Preemptions[0].Ordinal = 0 },
		"class":    func(f *Found) { f.Preemptions[0].Class = "place" },
		"count":    func(f *Found) { f.Preemptions[0].Count = 1 },
		"no count": func(f *Found) { f.Preemptions[1].Count = 0 },
		"pc":       func(f *Found) { f.Preemptions[2].PC = 1 },
		"no pc":    func(f *Found) { f.Preemptions[1].PC = 0 },
		"many":     func(f *Found) { f.Preemptions = make([]Preemption, MostPreemptions+1) },
	} {
		f := sampleFound()
		change(f)
		var corrupt *CorruptError
		if err := r.SetFound(f); !errors.As(err, &corrupt) {
			t.Errorf("%s is written: %v", name, err)
		}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeFound(data); !errors.As(err, &corrupt) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
	for _, text := range []string{"", "{", `{"version":0}`, `{"version":1,"timing":"eager","preemptions":[],"by":"","attempts":0,"level":"","more":1}`, `{"version":1,"timing":"eager"}{}`} {
		if err := os.WriteFile(filepath.Join(r.Dir, ScheduleName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := r.Found(); !errors.As(err, &corrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var version *VersionError
	if _, err := DecodeFound([]byte(`{"version":2}`)); !errors.As(err, &version) {
		t.Errorf("a later version: %v", err)
	}
	large := bytes.Repeat([]byte(" "), mostFound+1)
	if err := os.WriteFile(filepath.Join(r.Dir, ScheduleName), large, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Found(); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large file: %v", err)
	}
}

func TestWithPreemptions(t *testing.T) {
	order := Schedule{{1, 3}, {2, 2}, {1, 2}, {2, 1}}
	hold := func(thread uint32, ordinal, until uint64) Preemption {
		return Preemption{Thread: thread, Ordinal: ordinal, Class: PointEvent, Until: until}
	}
	for _, x := range []struct {
		name string
		list []Preemption
		want string
	}{
		{"none", nil, "1 3\n2 2\n1 2\n2 1\n"},
		{"inside of a run", []Preemption{hold(1, 3, 4)}, "1 3\n2 1\n1 1\n2 1\n1 2\n2 1\n"},
		{"behind its event at once", []Preemption{hold(1, 1, 0)}, "1 2\n1 2\n2 2\n1 2\n2 1\n"},
		{"before its next event", []Preemption{hold(1, 3, 100)}, "1 3\n2 2\n1 1\n1 2\n2 1\n"},
		{"behind its last event", []Preemption{hold(1, 5, 100)}, "1 3\n2 2\n1 2\n2 1\n1 1\n"},
		{"two at one position", []Preemption{hold(2, 2, 6), hold(1, 4, 5)}, "1 3\n2 2\n1 1\n2 1\n1 1\n1 1\n2 1\n"},
		{"the first of the list first", []Preemption{hold(2, 2, 6), hold(1, 5, 7)}, "1 3\n2 2\n1 1\n2 1\n1 2\n2 1\n"},
		{"of one step in their order", []Preemption{hold(1, 3, 5), hold(1, 3, 4)}, "1 3\n2 2\n1 2\n1 2\n2 1\n"},
	} {
		got, err := order.WithPreemptions(x.list)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		counts, plain := got.Events(), order.Events()
		for _, p := range x.list {
			plain[p.Thread]++
		}
		if got.String() != x.want || counts[1] != plain[1] || counts[2] != plain[2] {
			t.Errorf("%s:\n%swant\n%s", x.name, got, x.want)
		}
	}
	for _, bad := range []Preemption{hold(1, 6, 0), hold(3, 1, 0)} {
		if _, err := order.WithPreemptions([]Preemption{bad}); err == nil {
			t.Errorf("%v is somewhere", bad)
		}
	}
}

// The points are after their events, and are no events of the log.
func TestImageWithPreemptions(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, _ := l.Schedule()
	f := new(memoryFile)
	list := []Preemption{{Thread: 2, Ordinal: 2, Class: PointPC, PC: 0x1234, Count: 3, Until: 5}, {Thread: 2, Ordinal: 2, Class: PointEvent, Until: 5}}
	image, err := l.WriteImage(f, s, ImageOptions{Preemptions: list})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := l.WriteImage(new(memoryFile), s, ImageOptions{})
	if err != nil || plain.Events != image.Events {
		t.Fatalf("%d events, without %d, %v", image.Events, plain.Events, err)
	}
	b := f.b[uint64(image.Threads[2].Start)-agent.EngineImage : uint64(image.Threads[2].End)-agent.EngineImage]
	var kinds []Kind
	for len(b) > 0 {
		e, n, err := DecodeEvent(b)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == KindPoint && (e.Flags != agent.EventExtra || len(e.Args) != 2) {
			t.Errorf("%+v", e)
		}
		kinds, b = append(kinds, e.Kind), b[n:]
	}
	if kinds[2] != KindPoint || kinds[3] != KindPoint || slices.Contains(kinds[4:], KindPoint) {
		t.Errorf("%v", kinds)
	}
	last := Preemption{Thread: 1, Ordinal: s.Events()[1], Class: PointEvent}
	for e := range l.Events(1) {
		if e.Ordinal == last.Ordinal && (e.Kind == KindExit || e.Kind == KindEnd) {
			if _, err := l.WriteImage(new(memoryFile), s, ImageOptions{Preemptions: []Preemption{last}}); err == nil {
				t.Error("a point behind a thread's end")
			}
		}
	}
}

func FuzzFound(f *testing.F) {
	b, err := json.Marshal(sampleFound())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"timing":"lazy","preemptions":[],"by":"","attempts":0,"level":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := DecodeFound(data)
		if err != nil {
			return
		}
		first, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeFound(first)
		if err != nil {
			t.Fatalf("written and not read: %v", err)
		}
		if second, _ := json.Marshal(again); !bytes.Equal(first, second) {
			t.Errorf("%s\nbecame\n%s", first, second)
		}
		order := Schedule{{1, 3}, {2, 2}, {1, 2}}
		if got, err := order.WithPreemptions(found.Preemptions); err == nil {
			events := uint64(0)
			for _, n := range got.Events() {
				events += n
			}
			if events != uint64(7+len(found.Preemptions)) {
				t.Errorf("%v became %v", found.Preemptions, got)
			}
		}
	})
}
