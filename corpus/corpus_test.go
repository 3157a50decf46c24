package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// The test binary is also a program that adds to a corpus, so that it can be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CORPUS_TEST_ADD"); dir != "" {
		if err := addAll(dir, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func addAll(dir string, names []string) error {
	c, err := Create(context.Background(), dir)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, name := range names {
		if _, err := c.Add(context.Background(), name, AddOptions{Labels: map[string]string{"host": "ci-1"}}); err != nil {
			return err
		}
	}
	return nil
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// recording writes a recording that ended by a signal, that many seconds after start.
func recording(t testing.TB, dir string, seconds int) string {
	t.Helper()
	return written(t, dir, seconds, record.Outcome{Kind: record.OutcomeSignal, Signal: 6}, nil)
}

func written(t testing.TB, dir string, seconds int, o record.Outcome, children []record.Child) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := start.Add(time.Duration(seconds) * time.Second)
	pc := evidence.Addr(0x7ffff7a00000)
	o.PC = &pc
	m := record.Manifest{PID: 4711, Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank"}, BuildID: "00ff"}, Outcome: o, Children: children,
		Times: record.Times{Started: at.Add(-time.Second), Ended: &at}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	core := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 5*block-7)...)
	core[16] = 4 // ET_CORE
	copy(core[4*block:], "core "+fmt.Sprint(seconds))
	if err := os.WriteFile(filepath.Join(dir, "core"), core, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func create(t testing.TB) *Corpus {
	t.Helper()
	return opened(t, filepath.Join(t.TempDir(), "corpus"))
}

func opened(t testing.TB, dir string) *Corpus {
	t.Helper()
	c, err := Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func add(t testing.TB, c *Corpus, name string) string {
	t.Helper()
	a, err := c.Add(t.Context(), name, AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func listed(t testing.TB, c *Corpus, f Filter) []Entry {
	t.Helper()
	list, err := c.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// whole checks that rows and directories agree, and that nothing is left over.
func whole(t testing.TB, c *Corpus) []Entry {
	t.Helper()
	entries := listed(t, c, Filter{})
	dirs, err := os.ReadDir(filepath.Join(c.Dir, entriesName))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != len(entries) {
		t.Errorf("%d directories of %d entries", len(dirs), len(entries))
	}
	for _, e := range entries {
		files, err := c.filesOf(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(c.EntryDir(e.ID))
		if err != nil {
			t.Fatal(err)
		}
		scratch, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		k := newCopier(t.Context(), 0)
		if err := k.tree(root, scratch, ".", 0); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.files, files) || identity(e.Kind, k.files) != e.ID {
			t.Errorf("the entry %s has %v, and the rows say %v", e.ID, k.files, files)
		}
		root.Close()
		scratch.Close()
	}
	for _, name := range []string{incomingName, ownersName} {
		left, err := os.ReadDir(filepath.Join(c.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if owner, _, _ := cutOwner(e.Name()); owner != c.owner.name && !alive(c.Dir, owner) {
				t.Errorf("%s/%s is left over", name, e.Name())
			}
		}
	}
	return entries
}

// A directory with other files, another program's database and that of a later version are not
// changed.
func TestOtherDirectories(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "letter.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var input *InputError
	if _, err := Create(t.Context(), home); !errors.As(err, &input) || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("%v", err)
	}
	if list, _ := os.ReadDir(home); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if _, err := Open(t.Context(), t.TempDir()); !errors.As(err, &input) {
		t.Errorf("opened nothing: %v", err)
	}
	for _, pragma := range []string{"application_id = 1", fmt.Sprintf("user_version = %d", schemaVersion+1)} {
		c := create(t)
		if _, err := c.db.Exec("PRAGMA " + pragma); err != nil {
			t.Fatal(err)
		}
		c.Close()
		for _, open := range []func(context.Context, string) (*Corpus, error){Open, Change} {
			if _, err := open(t.Context(), c.Dir); !errors.As(err, &input) {
				t.Errorf("%s: %v", pragma, err)
			}
		}
	}
	// The rest of a creation that was killed does not matter.
	half := filepath.Join(t.TempDir(), "half")
	if err := os.MkdirAll(filepath.Join(half, entriesName), 0o700); err != nil {
		t.Fatal(err)
	}
	opened(t, half)
	odd := opened(t, filepath.Join(t.TempDir(), "odd ?%20#name"))
	add(t, odd, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	if _, err := os.Stat(filepath.Join(odd.Dir, databaseName)); err != nil {
		t.Error(err)
	}
}

// A damaged database is the user's input, whichever command finds that.
func TestDamagedDatabase(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"junk":    func(path string) error { return os.WriteFile(path, []byte("junk\n"), 0o600) },
		"text":    func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("text\n"), 4096), 0o600) },
		"a page":  func(path string) error { return os.Truncate(path, 4096) },
		"no page": func(path string) error { return os.Truncate(path, 1000) },
	} {
		c := create(t)
		add(t, c, recording(t, filepath.Join(t.TempDir(), "r"), 0))
		c.Close()
		if err := damage(filepath.Join(c.Dir, databaseName)); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(context.Context, string) (*Corpus, error){Open, Change, Create} {
			opened, err := open(t.Context(), c.Dir)
			if err == nil {
				_, err = opened.List(t.Context(), Filter{})
				opened.Close()
			}
			var input *InputError
			if !errors.As(err, &input) && !IsDamaged(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Several concurrent writers in several processes: each entry exists once.
func TestWriters(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "corpus")
	const writers, each = 4, 3
	common := recording(t, filepath.Join(from, "common"), 1000)
	var group sync.WaitGroup
	for w := range writers {
		names := []string{common}
		for i := range each {
			names = append(names, recording(t, filepath.Join(from, fmt.Sprint(w, "-", i)), w*each+i))
		}
		group.Go(func() {
			if out, err := adder(dir, names...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	if n := len(whole(t, opened(t, dir))); n != writers*each+1 {
		t.Errorf("%d entries", n)
	}
}

func adder(dir string, names ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], names...)
	cmd.Env = append(os.Environ(), "CORPUS_TEST_ADD="+dir)
	return cmd
}

// A reader changes nothing, and needs no right to write.
func TestReading(t *testing.T) {
	c := create(t)
	id := add(t, c, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	r, err := Open(t.Context(), c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(listed(t, r, Filter{})); n != 1 {
		t.Errorf("%d entries", n)
	}
	if err := r.Remove(t.Context(), id); err == nil {
		t.Error("removed by a reader")
	}
	if owners, _ := os.ReadDir(filepath.Join(c.Dir, ownersName)); len(owners) != 1 {
		t.Errorf("%v", owners)
	}
}

// TestPrivate: the database is private to its owner, even if the directory is not and if the
// file was readable by others. A symbolic link is not followed.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "corpus.db")
	for range 2 {
		c, err := Create(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	dir = t.TempDir()
	if err := os.Symlink(other, filepath.Join(dir, "corpus.db")); err != nil {
		t.Fatal(err)
	}
	var input *InputError
	if _, err := Create(t.Context(), dir); !errors.As(err, &input) {
		t.Error(err)
	}
	if _, err := os.Lstat(other); err == nil {
		t.Error("the link was followed")
	}
}
