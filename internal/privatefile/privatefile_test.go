package privatefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWrite: whatever had the name is replaced by a private file, and the target of a link is not
// changed.
func TestWrite(t *testing.T) {
	for name, make := range map[string]func(path, other string) error{
		"nothing":         func(string, string) error { return nil },
		"wide file":       func(path, _ string) error { return os.WriteFile(path, []byte("a longer text"), 0o666) },
		"link":            func(path, other string) error { return os.Symlink(other, path) },
		"link to nothing": func(path, other string) error { return os.Symlink(other+"-missing", path) },
		"hard link":       func(path, other string) error { return os.Link(other, path) },
		"fifo":            func(path, _ string) error { return unix.Mkfifo(path, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
			if err := errors.Join(os.WriteFile(other, []byte("other"), 0o644), os.Chmod(other, 0o666), make(path, other)); err != nil {
				t.Fatal(err)
			}
			if name == "wide file" {
				if err := os.Chmod(path, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := Write(path, []byte("text")); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("%v, %v: want a file of mode 0600", info, err)
			}
			if text, err := os.ReadFile(path); string(text) != "text" {
				t.Errorf("%q, %v", text, err)
			}
			if text, err := os.ReadFile(other); string(text) != "other" {
				t.Errorf("the other file: %q, %v", text, err)
			}
			if list, err := os.ReadDir(dir); len(list) != 2 {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
}

// TestReplaceFails: an old file of the name is not changed, and no other file is left.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	err := Replace(path, func(w io.Writer) error {
		io.WriteString(w, "new")
		return full
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	for _, x := range []string{dir, dir + "/", filepath.Join(dir, "missing", "file"), "", ".."} {
		if err := Write(x, nil); err == nil {
			t.Errorf("%q was written", x)
		}
	}
	if text, err := os.ReadFile(path); string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	if list, err := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
