package collect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
	"diagnose/image/collected"
)

// server starts an engine.
func server(t *testing.T) (*engine.Server, *engine.Engine) {
	t.Helper()
	s, err := engine.StartEmbedded(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e, err := s.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return s, e
}

// TestSend: cores that were sent have left the spool, and are in a corpus after a pull, with its objects.
func TestSend(t *testing.T) {
	core := nullCore(t)
	s := newSpool(t)
	for range 3 {
		handle(t, s, core, Crash{PID: 1 << 30, Signal: 11})
	}
	if o := handle(t, s, core, Crash{PID: 1 << 30, Signal: 6}); o.Dir == "" {
		t.Fatal(o.Refused)
	}
	// One is damaged, and stays.
	damaged := handle(t, s, core, Crash{PID: 1 << 30, Signal: 7})
	if err := os.WriteFile(filepath.Join(damaged.Dir, collected.FactsName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, e := server(t)
	sent, err := Send(t.Context(), s, e, map[string]string{"rack": "5"}, nil)
	if err != nil || sent.Entries != 2 || len(sent.Failed) != 1 || sent.Bytes == 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	if left, err := s.Entries(); err != nil || len(left) != 1 || left[0].Dir != damaged.Dir {
		t.Errorf("%+v, %v", left, err)
	}
	store, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if pulled, err := share.Pull(t.Context(), e, store, share.PullOptions{}); err != nil || len(pulled.Added) != 2 {
		t.Fatalf("%+v, %v", pulled, err)
	}
	list, err := store.List(t.Context(), corpus.Filter{})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, entry := range list {
		want := map[string]string{"SIGSEGV": "3", "SIGABRT": "1"}[entry.Ended]
		if entry.Name() != "program" || entry.Labels[LabelCrashes] != want || entry.Labels["rack"] != "5" || entry.Labels[corpus.LabelHost] == "" {
			t.Errorf("%+v", entry)
		}
		dir := store.EntryDir(entry.ID)
		p := openCore(t, filepath.Join(dir, collected.CoreName))
		if p.Exe == nil || filepath.Dir(filepath.Dir(p.Exe.File)) != dir {
			t.Errorf("%+v", p.Exe)
		}
		p.Close()
	}
}

// TestSendUnreachable: without an engine the cores stay, and a later call sends them.
func TestSendUnreachable(t *testing.T) {
	s := newSpool(t)
	if o := handle(t, s, nullCore(t), Crash{PID: 1 << 30, Signal: 11}); o.Dir == "" {
		t.Fatal(o.Refused)
	}
	down, gone := server(t)
	down.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if sent, err := Send(ctx, s, gone, nil, nil); err == nil || sent.Entries != 0 {
		t.Errorf("%+v, %v", sent, err)
	}
	if left, err := s.Entries(); err != nil || len(left) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
	_, e := server(t)
	if sent, err := Send(t.Context(), s, e, nil, nil); err != nil || sent.Entries != 1 {
		t.Errorf("%+v, %v", sent, err)
	}
}

// TestScan: the cores of a directory are taken once each.
func TestScan(t *testing.T) {
	core, dir, s := nullCore(t), t.TempDir(), newSpool(t)
	text, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"core.program.0.1": text, "core.program.0.2": text, ".#core.half": text[:100], "core.text": []byte("text"), "other": text} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done, err := Scan(s, dir)
	if err != nil || done.Kept != 1 || done.Counted != 1 || len(done.Failed) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err = Scan(s, dir); err != nil || done.Kept+done.Counted+len(done.Failed) != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	if _, err := Scan(s, filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
