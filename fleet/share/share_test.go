package share

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/evidence/signature"
	"diagnose/fleet/engine"
	"diagnose/replay/record"
)

func started(t *testing.T) *engine.Engine {
	t.Helper()
	s, err := engine.StartEmbedded(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e, err := s.Connect(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func created(t *testing.T) *corpus.Corpus {
	t.Helper()
	c, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// recording writes a recording of a program that a signal ended, whose core has holes.
func recording(t *testing.T, number int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), fmt.Sprintf("bank-%d", number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, number, 0, time.UTC)
	m := record.Manifest{PID: 4711, Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank"}, BuildID: "00ff"},
		Outcome: record.Outcome{Kind: record.OutcomeSignal, Signal: 6}, Times: record.Times{Started: at.Add(-time.Second), Ended: &at}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	core := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 1<<20)...)
	core[16] = 4 // ET_CORE
	copy(core[4<<12:], bytes.Repeat([]byte("memory of a program "), 30000))
	copy(core[6<<12:], fmt.Sprint("run ", number))
	name := filepath.Join(dir, record.CoreName)
	if err := os.WriteFile(name, core, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 64<<20); err != nil {
		t.Fatal(err)
	}
	return dir
}

func add(t *testing.T, c *corpus.Corpus, name string, labels map[string]string) string {
	t.Helper()
	a, err := c.Add(t.Context(), name, corpus.AddOptions{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func entries(t *testing.T, c *corpus.Corpus) []corpus.Entry {
	t.Helper()
	list, err := c.List(t.Context(), corpus.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func pushAll(t *testing.T, e *engine.Engine, c *corpus.Corpus) (list []Pushed) {
	t.Helper()
	for _, entry := range entries(t, c) {
		p, err := c.Pack(t.Context(), &entry, corpus.PackOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done, err := Push(t.Context(), e, &p, nil)
		if err != nil || done.ID != entry.ID {
			t.Fatalf("%+v, %v", done, err)
		}
		list = append(list, done)
	}
	return list
}

func pull(t *testing.T, e *engine.Engine, c *corpus.Corpus, f corpus.Filter) Pulled {
	t.Helper()
	done, err := Pull(t.Context(), e, c, PullOptions{Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func diagnosed(t *testing.T, c *corpus.Corpus, id string) {
	t.Helper()
	if err := c.Claim(t.Context(), id, "v1"); err != nil {
		t.Fatal(err)
	}
	s := signature.Restore([]string{"bank", "SIGABRT", "main"}, []string{"overflow", "main"})
	err := c.Finish(t.Context(), id, corpus.Result{Report: []byte(`{"case":"one"}`), Signature: s,
		Diagnosis: corpus.Diagnosis{Version: "v1", Diagnosed: true, Stack: s.Stack, Cause: s.Cause, Kind: "overflow", Summary: "it overflows", Started: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPushAndPull(t *testing.T) {
	e, c := started(t), created(t)
	first := add(t, c, recording(t, 1), map[string]string{"host": "ci-1"})
	diagnosed(t, c, first)
	second := add(t, c, recording(t, 2), nil)
	core := filepath.Join(t.TempDir(), "core.17")
	if err := os.Rename(filepath.Join(recording(t, 3), record.CoreName), core); err != nil {
		t.Fatal(err)
	}
	third := add(t, c, core, map[string]string{"host": "web-1"})

	pushed := pushAll(t, e, c)
	if pushed[0].Sent < 100 || slices.ContainsFunc(pushed, func(p Pushed) bool { return p.Existed }) {
		t.Errorf("%+v", pushed)
	}
	for _, p := range pushAll(t, e, c) {
		if !p.Existed || p.Sent != 0 {
			t.Errorf("a second time: %+v", p)
		}
	}

	to := created(t)
	if done := pull(t, e, to, corpus.Filter{Labels: map[string]string{"host": "ci-1"}}); !slices.Equal(done.Added, []string{first}) {
		t.Errorf("by label: %+v", done)
	}
	if done := pull(t, e, to, corpus.Filter{IDs: []string{third[:6]}}); !slices.Equal(done.Added, []string{third}) {
		t.Errorf("by name: %+v", done)
	}
	done := pull(t, e, to, corpus.Filter{})
	if !slices.Equal(done.Added, []string{second}) || done.Existed != 2 || len(done.Failed) > 0 {
		t.Errorf("%+v", done)
	}
	want, got := entries(t, c), entries(t, to)
	for i := range want {
		w, g := want[i], got[i]
		if !g.Imported || !strings.HasPrefix(g.Source, ", team red: "+w.Source) {
			t.Errorf("imported %v, from %q", g.Imported, g.Source)
		}
		g.Imported, g.Source, g.AddedAt = w.Imported, w.Source, w.AddedAt
		a, _ := json.Marshal(w)
		b, _ := json.Marshal(g)
		if !bytes.Equal(a, b) || w.Likeness() != g.Likeness() {
			t.Errorf("%s\nbecame\n%s", a, b)
		}
	}
	if text, err := to.Report(t.Context(), first); err != nil || string(text) != `{"case":"one"}` {
		t.Errorf("%s, %v", text, err)
	}
}

// A recording that is in no corpus is the same entry as if it had been added first.
func TestPushRecording(t *testing.T) {
	e, c := started(t), created(t)
	dir := recording(t, 1)
	p, err := corpus.PackRecording(t.Context(), dir, corpus.PackOptions{Labels: map[string]string{"job": "7"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), e, &p, nil); err != nil {
		t.Fatal(err)
	}
	id := add(t, c, dir, map[string]string{"job": "7"})
	diagnosed(t, c, id)
	pushAll(t, e, c)
	// The diagnosis stays when another host pushes the bare recording again.
	if done, err := Push(t.Context(), e, &p, nil); err != nil || !done.Existed || done.ID != id {
		t.Errorf("%+v, %v", done, err)
	}
	to := created(t)
	pull(t, e, to, corpus.Filter{})
	if list := entries(t, to); len(list) != 1 || list[0].ID != id || list[0].Diagnosis == nil || list[0].Labels["job"] != "7" || list[0].Source != ", team red: "+dir {
		t.Errorf("%+v", list)
	}
}

// What the engine says is not believed.
func TestHostileEngine(t *testing.T) {
	e, c := started(t), created(t)
	id, other := add(t, c, recording(t, 1), nil), add(t, c, recording(t, 2), nil)
	pushAll(t, e, c)
	record := func(id string) entryRecord {
		text, err := e.Record(t.Context(), entriesKind, id)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decodeRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		return *r
	}
	good, swapped := record(id), record(other)
	for name, r := range map[string]any{
		"other files":       entryRecord{Version: 1, Files: swapped.Files, Description: good.Description},
		"other description": entryRecord{Version: 1, Files: good.Files, Description: swapped.Description},
		"other entry":       swapped,
		"swapped":           entryRecord{Version: 1, Files: good.Description, Description: good.Files},
		"version":           entryRecord{Version: 2, Files: good.Files, Description: good.Description},
		"reference":         entryRecord{Version: 1, Files: "../x", Description: good.Description},
		"missing":           entryRecord{Version: 1, Files: strings.Repeat("0", 64), Description: good.Description},
		"no record":         []int{1},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.PutRecord(t.Context(), entriesKind, id, text); err != nil {
			t.Fatal(err)
		}
		to := created(t)
		done := pull(t, e, to, corpus.Filter{})
		if len(done.Failed) != 1 || !slices.Equal(done.Added, []string{other}) || len(entries(t, to)) != 1 {
			t.Errorf("%s: %+v", name, done)
		}
		if list, err := os.ReadDir(filepath.Join(to.Dir, "incoming")); err != nil || len(list) > 0 {
			t.Errorf("%s left %v, %v", name, list, err)
		}
	}
	var input *corpus.InputError
	if _, err := Pull(t.Context(), e, created(t), PullOptions{Filter: corpus.Filter{IDs: []string{"zz"}}}); !errors.As(err, &input) {
		t.Errorf("an entry that is not there: %v", err)
	}
	done, err := Pull(t.Context(), e, created(t), PullOptions{Bytes: 1 << 20})
	if err != nil || len(done.Added) > 0 || len(done.Failed) != 2 {
		t.Errorf("entries that are too large: %+v, %v", done, err)
	}
}

// A push that is interrupted anywhere is not seen, and resumes.
func TestInterruptedPush(t *testing.T) {
	e, c := started(t), created(t)
	id := add(t, c, recording(t, 1), nil)
	entry, err := c.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Pack(t.Context(), &entry, corpus.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sent := int64(0)
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		chunks := 0
		_, err := Push(ctx, e, &p, func(g engine.Progress) {
			sent = max(sent, g.Sent)
			if chunks++; chunks == n {
				cancel()
			}
		})
		cancel()
		keys, listed := e.RecordKeys(t.Context(), entriesKind)
		if listed != nil {
			t.Fatal(listed)
		}
		if err == nil {
			if n < 4 || !slices.Equal(keys, []string{id}) {
				t.Errorf("after %d interruptions: %v", n, keys)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || len(keys) > 0 {
			t.Fatalf("interrupted at %d: %v, %v", n, keys, err)
		}
	}
	if done := pull(t, e, created(t), corpus.Filter{}); !slices.Equal(done.Added, []string{id}) {
		t.Errorf("%+v", done)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"files":"` + strings.Repeat("0", 64) + `","description":"` + strings.Repeat("1", 64) + `"}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := decodeRecord(text); err == nil && (engine.CheckReference(r.Files) != nil || r.Version != 1) {
			t.Errorf("%+v", r)
		}
	})
}
