package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"diagnose/image/collected"
)

// collectedCore is a directory as a collector leaves it.
func collectedCore(t *testing.T, facts collected.Facts) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "collected")
	text, err := json.Marshal(facts)
	err = errors.Join(err, os.MkdirAll(filepath.Join(dir, collected.ObjectsName), 0o700),
		os.WriteFile(filepath.Join(dir, collected.CoreName), []byte("\x28\xb5\x2f\xfd core"), 0o600),
		os.WriteFile(filepath.Join(dir, collected.FactsName), text, 0o600),
		os.WriteFile(filepath.Join(dir, collected.ObjectsName, "00ff"), []byte("object"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAddCollected(t *testing.T) {
	c := create(t)
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	facts := collected.Facts{Version: 1, Program: "/usr/bin/server", BuildID: "00ff", Signal: 11, Time: at, Host: "web-7", Container: "c0ffee", Signature: "5150"}
	id := add(t, c, collectedCore(t, facts))
	check := func(c *Corpus, host string) {
		t.Helper()
		e := whole(t, c)[0]
		if e.Kind != KindCore || e.Name() != "server" || e.BuildID != "00ff" || e.Ended != "SIGSEGV" || !e.FailedAt.Equal(at) ||
			e.Labels[LabelHost] != host || e.Labels[LabelContainer] != "c0ffee" || e.Likeness() != "server\nSIGSEGV\n5150" {
			t.Errorf("%+v", e)
		}
		for _, name := range []string{coreName, collected.FactsName, "objects/00ff"} {
			if _, err := os.Stat(filepath.Join(c.EntryDir(id), name)); err != nil {
				t.Error(err)
			}
		}
	}
	check(c, "web-7")
	// An archive carries it, and what it says is read from its facts.
	var archive bytes.Buffer
	if _, err := c.Export(t.Context(), &archive, Filter{}); err != nil {
		t.Fatal(err)
	}
	other := create(t)
	if _, err := other.Import(t.Context(), &archive, 0); err != nil {
		t.Fatal(err)
	}
	check(other, "web-7")
	// A label of the user replaces that of the host.
	third := create(t)
	if _, err := third.Add(t.Context(), collectedCore(t, facts), AddOptions{Labels: map[string]string{LabelHost: "mine"}}); err != nil {
		t.Fatal(err)
	}
	check(third, "mine")
}

func TestAddCollectedRefuses(t *testing.T) {
	c := create(t)
	for name, spoil := range map[string]func(dir string) error{
		"newer": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, collected.FactsName), []byte(`{"version":99}`), 0o600)
		},
		"facts": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, collected.FactsName), []byte(`{`), 0o600)
		},
		"core": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, collected.CoreName), []byte("text"), 0o600)
		},
		"link": func(dir string) error {
			return os.Symlink("/etc/passwd", filepath.Join(dir, collected.ObjectsName, "x"))
		},
		"deeper": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, collected.ObjectsName, "x"), 0o700), os.WriteFile(filepath.Join(dir, collected.ObjectsName, "x", "y"), nil, 0o600))
		},
	} {
		dir := collectedCore(t, collected.Facts{Version: 1})
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		var input *InputError
		if _, err := c.Add(t.Context(), dir, AddOptions{}); !errors.As(err, &input) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPackCollected: a parcel is the entry that Add makes.
func TestPackCollected(t *testing.T) {
	c := create(t)
	dir := collectedCore(t, collected.Facts{Version: 1, Program: "/usr/bin/server", Signal: 6, Host: "web-7"})
	p, err := PackCollected(t.Context(), dir, PackOptions{Labels: map[string]string{"job": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if id := add(t, c, dir); p.Entry.ID != id || p.Dir != dir || len(p.Files) != 3 || p.Entry.Ended != "SIGABRT" || p.Entry.Labels["job"] != "x" || p.Entry.Labels[LabelHost] != "web-7" {
		t.Errorf("%+v, and Add says %s", p, id)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var input *InputError
	if _, err := PackCollected(t.Context(), dir, PackOptions{}); !errors.As(err, &input) {
		t.Error(err)
	}
}
