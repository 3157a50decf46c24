package corpus

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/replay/record"
)

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

// If a child process failed, the child's recording is diagnosed.
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

// Hostile input, and input without a failure, is refused and leaves nothing.
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
	coreDir, coreText, coreEmpty := plain("core is a directory"), plain("core is a text"), plain("core is empty")
	childCore := plain("core of a child")
	inChild := filepath.Join(childCore, "children", "1-1", "core")
	for _, err := range []error{
		os.Remove(filepath.Join(coreDir, "core")), os.Mkdir(filepath.Join(coreDir, "core"), 0o700), os.WriteFile(filepath.Join(coreText, "core"), []byte("junk"), 0o600),
		os.Truncate(filepath.Join(coreEmpty, "core"), 0), os.MkdirAll(inChild, 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
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
		{deep, "deep"}, {huge, "larger than allowed"}, {empty, "manifest"}, {text, "neither a recording nor a core"},
		{coreDir, "core is not a regular file"}, {coreText, "core is no ELF core"}, {coreEmpty, "core is no ELF core"}, {childCore, "children/1-1/core is not a regular file"},
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
