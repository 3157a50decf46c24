package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOutputReplaces: a symbolic link and a file that others may read are replaced by
// a private file, by every command that has --output.
func TestOutputReplaces(t *testing.T) {
	core := crashed(t)
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "corpus")
	if got := diagnose(t, nil, "corpus", "add", "--corpus", store, core); got.status != exitOK {
		t.Fatalf("status %d, stderr %q", got.status, got.stderr)
	}
	for name, args := range map[string][]string{
		"crash":  {"crash", "--core", core},
		"json":   {"crash", "--core", core, "--format", "json"},
		"export": {"corpus", "export", "--corpus", store},
	} {
		for place, make := range map[string]func(path string) error{
			"link":         func(path string) error { return os.Symlink(other, path) },
			"broken link":  func(path string) error { return os.Symlink(other+"-missing", path) },
			"wide file":    func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) },
			"nothing here": func(string) error { return nil },
		} {
			path := filepath.Join(dir, name+" "+place)
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			got := diagnose(t, nil, append(args, "--output", path)...)
			if info, err := os.Lstat(path); got.status != exitOK || err != nil || info.Mode() != 0o600 || info.Size() == 0 {
				t.Errorf("%s, %s: status %d, stderr %q, %v, %v", name, place, got.status, got.stderr, info, err)
			}
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
		t.Errorf("the link's file holds %.40q, %v", text, err)
	}
	if _, err := os.Lstat(other + "-missing"); err == nil {
		t.Error("a file was made where a link leads to")
	}
}

// TestOutputThrough: descriptors, devices and pipes are written to and never replaced.
func TestOutputThrough(t *testing.T) {
	core, dir := crashed(t), t.TempDir()
	for _, path := range []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr", "/dev/fd/2"} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		got := diagnose(t, nil, "crash", "--core", core, "--output", path)
		if !strings.HasPrefix(got.stdout+got.stderr, "null pointer read") {
			t.Errorf("%s: status %d, stdout %.40q, stderr %.40q", path, got.status, got.stdout, got.stderr)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s became %v, %v", path, after, err)
		}
	}
	for path, says := range map[string]string{"/dev/fd/99": "bad file descriptor", "/dev": "is a directory"} {
		if got := diagnose(t, nil, "crash", "--core", core, "--output", path); got.status != exitUsage || !strings.Contains(got.stderr, says) {
			t.Errorf("%s: status %d, stderr %q", path, got.status, got.stderr)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	if got := diagnose(t, nil, "crash", "--core", core, "--output", link); got.status != exitUsage || !strings.Contains(got.stderr, "symbolic link") {
		t.Errorf("a link to a device: status %d, stderr %q", got.status, got.stderr)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, err := os.ReadFile(pipe)
		read <- fmt.Sprintf("%s%v", text, err)
	}()
	if got := diagnose(t, nil, "crash", "--core", core, "--output", pipe); got.status != exitOK {
		t.Fatalf("a pipe: status %d, stderr %q", got.status, got.stderr)
	}
	if text := <-read; !strings.HasPrefix(text, "null pointer read") {
		t.Errorf("a pipe: %.40q", text)
	}
}

// TestOutputAppended: a log that standard error is appended to is not emptied.
func TestOutputAppended(t *testing.T) {
	core := crashed(t)
	log, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	log.WriteString("before\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "crash", "--core", core, "--output", "/dev/stderr")
	cmd.Env, cmd.Stderr = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1"), log
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(log.Name()); err != nil || !strings.HasPrefix(string(text), "before\nnull pointer read") {
		t.Errorf("%.60q, %v", text, err)
	}
}
