package explore

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/recorder"
)

// TestStatePrivate: the state is written to a private file that replaces a symbolic link, and
// is read only from a regular file.
func TestStatePrivate(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := HuntOptions{Record: recorder.Options{Path: exe, Output: dir}}
	path, err := o.statePath()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte(`{"version":1,"next":9,"length":9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if err := o.Resume(); err == nil {
		t.Error("a symbolic link was read")
	}
	if err := o.Stopped(&HuntResult{Next: 6, Length: 100}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if text, err := os.ReadFile(other); err != nil || len(text) != 33 {
		t.Errorf("the other file: %q, %v", text, err)
	}
	if err := o.Resume(); err != nil || o.First != 6 {
		t.Errorf("seed %d: %v", o.First, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Resume(); err == nil {
		t.Error("a pipe was read")
	}
}
