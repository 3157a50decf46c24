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

	"diagnose/replay/record/eventlog"
)

func sampleFound() *Found {
	return &Found{Version: FoundVersion, Timing: TimingEager, By: "search", Attempts: 7, Level: "fine", Preemptions: []eventlog.Preemption{
		{Thread: 2, Ordinal: 3, Class: eventlog.PointEvent, Until: 9},
		{Thread: 1, Ordinal: 1, Class: eventlog.PointPC, PC: 0x401000, Count: 2, Until: 4},
		{Thread: 2, Ordinal: 1, Class: eventlog.PointCode, Count: 5, Until: 1},
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
		"threads":  func(f *Found) { f.Preemptions[0].Thread = eventlog.MostThreads },
		"ordinal":  func(f *Found) { f.Preemptions[0].Ordinal = 0 },
		"class":    func(f *Found) { f.Preemptions[0].Class = "place" },
		"count":    func(f *Found) { f.Preemptions[0].Count = 1 },
		"no count": func(f *Found) { f.Preemptions[1].Count = 0 },
		"pc":       func(f *Found) { f.Preemptions[2].PC = 1 },
		"no pc":    func(f *Found) { f.Preemptions[1].PC = 0 },
		"many":     func(f *Found) { f.Preemptions = make([]eventlog.Preemption, eventlog.MostPreemptions+1) },
	} {
		f := sampleFound()
		change(f)
		var corrupt *eventlog.CorruptError
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
		var corrupt *eventlog.CorruptError
		if _, err := r.Found(); !errors.As(err, &corrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var version *eventlog.VersionError
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
		order := eventlog.Schedule{{Thread: 1, Events: 3}, {Thread: 2, Events: 2}, {Thread: 1, Events: 2}}
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
