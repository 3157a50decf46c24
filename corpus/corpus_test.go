package corpus

import (
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
	"diagnose/evidence/signature"
	"diagnose/record"
)

// The test binary adds to a corpus as well, so that it can be killed at it.
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

// recording writes a recording that ended by a signal, so many seconds after start.
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
	core := make([]byte, 5*block)
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

// whole sees that rows and directories tell the same, and that nothing is left over.
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
		k := newCopier(0)
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

func TestAddListShow(t *testing.T) {
	c, from := create(t), t.TempDir()
	dir := recording(t, filepath.Join(from, "bank-0001-SIGABRT"), 0)
	later := recording(t, filepath.Join(from, "bank-0002-SIGABRT"), 60)
	a, err := c.Add(t.Context(), dir, AddOptions{Labels: map[string]string{"job": "nightly"}})
	if err != nil || a.Existed {
		t.Fatal(a, err)
	}
	second := add(t, c, later)
	again, err := c.Add(t.Context(), dir, AddOptions{Labels: map[string]string{"host": "ci-2"}})
	if err != nil || !again.Existed || again.ID != a.ID {
		t.Errorf("added a second time: %+v, %v", again, err)
	}
	entries := whole(t, c)
	if len(entries) != 2 || entries[0].ID != second || entries[1].ID != a.ID {
		t.Fatalf("%+v", entries)
	}
	e := entries[1]
	if e.Name() != "bank" || e.BuildID != "00ff" || e.Ended != "SIGABRT" || e.Culprit != "." || !e.FailedAt.Equal(start) || e.Kind != KindRecording ||
		e.Labels["job"] != "nightly" || e.Labels["host"] != "ci-2" || e.Bytes == 0 || e.Bytes >= 5*block || e.Diagnosis != nil {
		t.Errorf("%+v", e)
	}
	if entries[0].Likeness() != e.Likeness() {
		t.Error("two recordings that are alike are not")
	}
	for name, f := range map[string]Filter{"label": {Labels: map[string]string{"job": "nightly"}}, "id": {IDs: []string{a.ID}}} {
		if got := listed(t, c, f); len(got) != 1 || got[0].ID != a.ID {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := listed(t, c, Filter{Since: start.Add(time.Second)}); len(got) != 1 || got[0].ID != second {
		t.Errorf("since: %+v", got)
	}
	if got, err := c.Find(t.Context(), a.ID[:6]); err != nil || got.ID != a.ID {
		t.Errorf("%+v, %v", got, err)
	}
	var input *InputError
	if _, err := c.Find(t.Context(), ""); !errors.As(err, &input) {
		t.Errorf("no name: %v", err)
	}
	if h, err := c.History(t.Context(), a.ID); err != nil || len(h) != 1 || h[0].What != "added" || h[0].Detail != dir {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestMoveTakesTheSourceAway(t *testing.T) {
	c := create(t)
	dir := recording(t, filepath.Join(t.TempDir(), "r"), 0)
	if _, err := c.Add(t.Context(), dir, AddOptions{Move: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if n := len(whole(t, c)); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// Of a process whose child failed the child's recording is meant.
func TestTheProcessThatFailed(t *testing.T) {
	c := create(t)
	dir := filepath.Join(t.TempDir(), "sh")
	written(t, dir, 9, record.Outcome{Kind: record.OutcomePassed}, []record.Child{{Path: "children/1-1", PID: 1}, {Path: "children/2-2", PID: 2}})
	written(t, filepath.Join(dir, "children/1-1"), 3, record.Outcome{Kind: record.OutcomePassed}, nil)
	written(t, filepath.Join(dir, "children/2-2"), 5, record.Outcome{Kind: record.OutcomeExec}, []record.Child{{Path: "children/2-3", PID: 2}})
	written(t, filepath.Join(dir, "children/2-2/children/2-3"), 7, record.Outcome{Kind: record.OutcomeSignal, Signal: 11}, nil)
	add(t, c, dir)
	passed := add(t, c, written(t, filepath.Join(t.TempDir(), "ok"), 1, record.Outcome{Kind: record.OutcomePassed}, nil))
	e := whole(t, c)
	if e[0].Culprit != "children/2-2/children/2-3" || e[0].Ended != "SIGSEGV" || e[0].Passed || !e[0].FailedAt.Equal(start.Add(7*time.Second)) {
		t.Errorf("%+v", e[0])
	}
	if e[1].ID != passed || !e[1].Passed {
		t.Errorf("%+v", e[1])
	}
	if list, err := c.Undiagnosed(t.Context(), "v1"); err != nil || len(list) != 1 || list[0].ID != e[0].ID {
		t.Errorf("to be diagnosed: %+v, %v", list, err)
	}
}

// What is hostile or no failure is refused, and nothing of it stays.
func TestRefused(t *testing.T) {
	c := create(t)
	from := t.TempDir()
	plain := func(name string) string { return recording(t, filepath.Join(from, name), 0) }
	link := plain("link")
	if err := os.Symlink("/etc/passwd", filepath.Join(link, "data")); err != nil {
		t.Fatal(err)
	}
	linkedDir := plain("linked directory")
	if err := os.Symlink("/etc", filepath.Join(linkedDir, "objects")); err != nil {
		t.Fatal(err)
	}
	fifo := plain("fifo")
	if out, err := exec.Command("mkfifo", filepath.Join(fifo, "x")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	odd := plain("odd")
	if err := os.WriteFile(filepath.Join(odd, "a\x1b[2Jb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	deep := plain("deep")
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", mostDepth+2)), 0o700); err != nil {
		t.Fatal(err)
	}
	huge := plain("huge")
	if err := os.Truncate(filepath.Join(huge, "core"), 1<<43); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(from, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(from, "text")
	if err := os.WriteFile(text, []byte("\x7fELF and nothing else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ name, says string }{
		{link, "data is not a regular file"}, {linkedDir, "objects is not a regular file"}, {fifo, "x is not a regular file"}, {odd, "such a name is not taken"},
		{deep, "deep"}, {huge, "larger than what is allowed"}, {empty, "manifest"}, {text, "neither a recording nor a core"},
		{"/dev/null", "neither a recording nor a file"}, {filepath.Join(from, "missing"), "no such file"},
	} {
		_, err := c.Add(t.Context(), x.name, AddOptions{})
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", filepath.Base(x.name), err, x.says)
		}
	}
	for _, label := range []string{"", "=x", "a b=c", "nothing", "k=\x1b[2J", "k=\xff"} {
		if _, _, err := ParseLabel(label); err == nil {
			t.Errorf("the label %q is taken", label)
		}
	}
	if n := len(whole(t, c)); n != 0 {
		t.Errorf("%d entries", n)
	}
	if left, _ := os.ReadDir(filepath.Join(c.Dir, incomingName)); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestCores(t *testing.T) {
	c := create(t)
	core := filepath.Join(t.TempDir(), "core.1")
	head := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 60)...)
	head[16] = 4
	if err := os.WriteFile(core, head, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0)
	if err := os.Chtimes(core, at, at); err != nil {
		t.Fatal(err)
	}
	add(t, c, core)
	if e := whole(t, c); len(e) != 1 || e[0].Kind != KindCore || !e[0].FailedAt.Equal(at) || e[0].Name() != "core" {
		t.Errorf("%+v", e)
	}
}

// A directory with something else in it, another program's database and a later one's
// are left as they are.
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
	// What a creation that was killed left is no hindrance.
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

// Several writers at once, of several processes: each entry is there once.
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

func TestRemoveAndGC(t *testing.T) {
	c, from := create(t), t.TempDir()
	var ids []string
	for i := range 6 {
		ids = append(ids, add(t, c, recording(t, filepath.Join(from, fmt.Sprint(i)), i)))
	}
	if err := c.Remove(t.Context(), ids[0], "nothing"); err == nil {
		t.Error("an entry that is not there was removed")
	}
	if n := len(whole(t, c)); n != 6 {
		t.Errorf("an error removed something: %d entries", n)
	}
	if err := c.Remove(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:5] {
		diagnosed(t, c, id, "v1", "one", "stack")
	}
	// 5 was not diagnosed, 4 is the newest of its cluster, 3 failed too late.
	opts := GCOptions{Before: start.Add(3 * time.Second), Examples: 1, DryRun: true}
	if drop, err := c.GC(t.Context(), opts); err != nil || len(drop) != 2 {
		t.Fatalf("%+v, %v", drop, err)
	}
	if n := len(whole(t, c)); n != 5 {
		t.Errorf("telling what would go left %d entries", n)
	}
	opts.DryRun = false
	if drop, err := c.GC(t.Context(), opts); err != nil || len(drop) != 2 {
		t.Fatalf("%+v, %v", drop, err)
	}
	left := whole(t, c)
	if len(left) != 3 || left[2].ID != ids[3] {
		t.Errorf("%+v", left)
	}
	clusters, err := c.Clusters(t.Context())
	if err != nil || len(clusters) != 1 || clusters[0].Count != 4 {
		t.Errorf("the history lost what was dropped: %+v, %v", clusters, err)
	}
	// Added again it is there again, with its diagnosis.
	if got := add(t, c, filepath.Join(from, "1")); got != ids[1] {
		t.Errorf("%s, want %s", got, ids[1])
	}
	if e, err := c.Find(t.Context(), ids[1]); err != nil || e.DroppedAt != nil || e.Diagnosis == nil {
		t.Errorf("%+v, %v", e, err)
	}
	whole(t, c)
}

// diagnosed writes a diagnosis as a nightly run would.
func diagnosed(t testing.TB, c *Corpus, id, version, cause, stack string) {
	t.Helper()
	if err := c.Claim(t.Context(), id, version); err != nil {
		t.Fatal(err)
	}
	r := Result{Diagnosis: Diagnosis{Version: version, Diagnosed: true, Kind: "heap-overflow", Proof: "proved", Summary: cause + " is to blame", Started: start, Took: time.Second},
		Signature: signature.Restore([]string{stack}, []string{cause}), Report: []byte(`{"case":"` + cause + `"}`)}
	if err := c.Finish(t.Context(), id, r); err != nil {
		t.Fatal(err)
	}
}

func TestDiagnoses(t *testing.T) {
	c := create(t)
	id := add(t, c, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	diagnosed(t, c, id, "v1", "one", "stack")
	if err := c.Claim(t.Context(), id, "v1"); !errors.Is(err, ErrTaken) {
		t.Errorf("diagnosed twice: %v", err)
	}
	if err := c.Finish(t.Context(), id, Result{}); !errors.Is(err, ErrTaken) {
		t.Errorf("a result without a claim: %v", err)
	}
	diagnosed(t, c, id, "v2", "two", "stack")
	e, err := c.Find(t.Context(), id)
	if err != nil || e.Diagnosis == nil || e.Diagnosis.Version != "v2" || e.Diagnosis.Summary != "two is to blame" || !e.Diagnosis.Diagnosed {
		t.Fatalf("%+v, %v", e.Diagnosis, err)
	}
	if text, err := c.Report(t.Context(), id); err != nil || string(text) != `{"case":"two"}` {
		t.Errorf("%s, %v", text, err)
	}
	if list, err := c.Diagnoses(t.Context(), id); err != nil || len(list) != 2 || list[0].Version != "v1" || list[0].Took != time.Second {
		t.Errorf("%+v, %v", list, err)
	}
	if lines, err := c.Lines(t.Context(), e.Diagnosis.Cause); err != nil || !slices.Equal(lines, []string{"two"}) {
		t.Errorf("%q, %v", lines, err)
	}
	// One that came to nothing is tried again when that is asked for.
	if err := c.Claim(t.Context(), id, "v3"); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v3", Reason: "it took too long"}}); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Undiagnosed(t.Context(), "v3"); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if n, err := c.Forget(t.Context(), "v3"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if list, err := c.Undiagnosed(t.Context(), "v3"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	// Nothing is written for an entry that was removed meanwhile.
	if err := c.Claim(t.Context(), id, "v3"); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v3"}}); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
}

// A claim ends with the process that made it, however that ends.
func TestClaimsEndWithTheirProcess(t *testing.T) {
	one := create(t)
	two := opened(t, one.Dir)
	id := add(t, one, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	if err := one.Claim(t.Context(), id, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := two.Claim(t.Context(), id, "v1"); !errors.Is(err, ErrTaken) {
		t.Fatalf("%v", err)
	}
	if set, err := two.Claimed(t.Context()); err != nil || !set[id] {
		t.Errorf("%v, %v", set, err)
	}
	one.owner.file.Close() // as the kernel does at the process's end
	if set, err := two.Claimed(t.Context()); err != nil || set[id] {
		t.Errorf("%v, %v", set, err)
	}
	if err := two.Claim(t.Context(), id, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := one.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v1"}}); !errors.Is(err, ErrTaken) {
		t.Errorf("two results: %v", err)
	}
	if err := two.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if set, err := two.Claimed(t.Context()); err != nil || len(set) != 0 {
		t.Errorf("%v, %v", set, err)
	}
}

func TestClusters(t *testing.T) {
	c, from := create(t), t.TempDir()
	for i, x := range []struct{ cause, stack string }{{"one", "a"}, {"one", "b"}, {"two", "a"}, {"", "a"}} {
		id := add(t, c, recording(t, filepath.Join(from, fmt.Sprint(i)), i))
		if err := c.Claim(t.Context(), id, "v1"); err != nil {
			t.Fatal(err)
		}
		s := signature.Restore([]string{x.stack}, nil)
		if x.cause != "" {
			s = signature.Restore([]string{x.stack}, []string{x.cause})
		}
		if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v1", Diagnosed: true}, Signature: s}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Clusters(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if g := list[0]; g.Count != 2 || g.Stacks != 2 || !g.ByCause || !slices.Equal(g.Lines, []string{"one"}) || !g.First.Equal(start) || !g.Last.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", g)
	}
}

// A failure of a later build is a regression; one of a build from before the fix is not.
func TestFixedAndBack(t *testing.T) {
	c, from := create(t), t.TempDir()
	build := func(i int, build string) string {
		dir := recording(t, filepath.Join(from, fmt.Sprint(i)), i)
		m, err := record.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Program.BuildID = build
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		id := add(t, c, dir)
		diagnosed(t, c, id, "v1", "one", "stack")
		return id
	}
	cluster := func() Cluster {
		list, err := c.Clusters(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	build(0, "aa")
	digest := cluster().Digest
	if err := c.Fixed(t.Context(), digest, start.Add(10*time.Second), "in 1.4"); err != nil {
		t.Fatal(err)
	}
	build(20, "aa")
	if g := cluster(); g.Back != "" || g.Fixed == nil || g.Note != "in 1.4" {
		t.Errorf("an old build: %+v", g)
	}
	back := build(30, "bb")
	build(40, "bb")
	if g := cluster(); g.Back != back {
		t.Errorf("back since %q, want %q", g.Back, back)
	}
	at := start.Add(time.Hour)
	for range 2 {
		if err := c.Reported(t.Context(), at, []string{digest}, []string{digest}); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour) // what was reported first stays
	}
	if g := cluster(); g.Reported == nil || !g.Reported.Equal(start.Add(time.Hour)) || g.Returned == nil || !g.Returned.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v", g)
	}
	if err := c.Reopened(t.Context(), digest, ""); err != nil {
		t.Fatal(err)
	}
	if g := cluster(); g.Fixed != nil || g.Back != "" || g.Returned != nil {
		t.Errorf("%+v", g)
	}
}

// Who reads changes nothing, and needs no right to.
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
