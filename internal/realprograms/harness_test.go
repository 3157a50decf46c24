package realprograms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/agent"
)

// searchPath has Debian's programs before what a machine has of its own.
const searchPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// setting is one configuration of the agent; every program runs under each.
type setting struct {
	name, options string
}

var settings = []setting{
	// The default of a user who sets nothing: death at the first accusation.
	{"default", ""},
	// Everything that costs something, checked all the time.
	{"thorough", "on_error=log:quarantine_mb=16:stacks=12:fill_bytes=4096:check_interval_ms=10"},
}

// work is a program's usual work: a bash script, run in an empty directory.
type work struct {
	name string
	// needs are commands that must be installed, uses the commands, or names
	// of executables, in which the agent must have been at work.
	needs, uses []string
	script      string
	// env is added to the environment.
	env []string
	// varies are regular expressions of output that differs between two plain
	// runs as well; what they match is left out of the comparison.
	varies []string
	limit  time.Duration
}

// result is all that is compared.
type result struct {
	status         string
	stdout, stderr string
	files          map[string]string
}

func soak() bool { return os.Getenv("DIAGNOSE_SOAK") != "" }

// size is quick, or long in a soak.
func size(quick, long int) int {
	if soak() {
		return long
	}
	return quick
}

// need skips the test when a command is not installed.
func need(t testing.TB, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if lookPath(c) == "" {
			t.Skip((&agent.UnsupportedError{What: c + " is not installed"}).Error())
		}
	}
}

func lookPath(command string) string {
	for _, dir := range filepath.SplitList(searchPath) {
		path := filepath.Join(dir, command)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// executable is the name of the file that a command runs.
func executable(command string) string {
	path := lookPath(command)
	if path == "" {
		return command
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.Base(path)
}

// compareSettings does the work plainly and under every setting, and compares.
func (w work) compareSettings(t *testing.T) {
	t.Helper()
	need(t, append([]string{"bash"}, w.needs...)...)
	parent := t.TempDir()
	plain := w.once(t, parent, environment(nil))
	if !strings.HasPrefix(plain.status, "exit status 0") {
		t.Fatalf("the plain run: %s\n%s%s", plain.status, tail(plain.stdout), tail(plain.stderr))
	}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			a := newAgent(t, s)
			got := w.once(t, parent, environment(a))
			compare(t, plain, got)
			for _, c := range a.complaints(t, w.uses) {
				t.Error(c)
			}
		})
	}
}

// once does the work in parent's "work", which has the same name in all runs
// because it gets into outputs.
func (w work) once(t *testing.T, parent string, env []string) result {
	t.Helper()
	dir := filepath.Join(parent, "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer removeAll(t, dir)
	limit := w.limit
	if limit == 0 {
		limit = time.Duration(size(180, 1800)) * time.Second
	}
	env = append(env, "HOME="+dir, fmt.Sprintf("SCALE=%d", size(1, 20)))
	cmd := bounded(t, limit, "bash", "-e", "-o", "pipefail", "-c", w.script)
	cmd.Dir, cmd.Env = dir, append(env, w.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	// The script may have left a server running.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", w.name, err, tail(stderr.String()))
	}
	r := result{status: cmd.ProcessState.String(), files: files(t, dir)}
	r.stdout, r.stderr = w.honest(stdout.String()), w.honest(stderr.String())
	for name, text := range r.files {
		r.files[name] = w.honest(text)
	}
	return r
}

// honest removes the text that differs between any two runs.
func (w work) honest(s string) string {
	for _, v := range w.varies {
		s = regexp.MustCompile("(?m)"+v).ReplaceAllString(s, "<varies>")
	}
	return s
}

// bounded is a command that gets SIGKILL after the limit, with all descendants that stay in its
// process group.
func bounded(t testing.TB, limit time.Duration, name string, args ...string) *exec.Cmd {
	t.Helper()
	path := lookPath(name)
	if path == "" {
		path = name
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// environment is the environment of every run; a is nil for the plain one.
func environment(a *agentRun) []string {
	env := []string{"PATH=" + searchPath, "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC"}
	if a != nil {
		env = append(env, a.env()...)
	}
	return env
}

// files reads everything below dir. Sockets and the like are named only.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += "\n" + string(body)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		found[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func compare(t *testing.T, plain, got result) {
	t.Helper()
	if got.status != plain.status {
		t.Errorf("%s, plainly %s\n%s", got.status, plain.status, tail(got.stderr))
	}
	difference(t, "stdout", plain.stdout, got.stdout)
	difference(t, "stderr", plain.stderr, got.stderr)
	for _, name := range slices.Sorted(maps.Keys(plain.files)) {
		text, ok := got.files[name]
		if !ok {
			t.Errorf("file %s is missing", name)
			continue
		}
		difference(t, "file "+name, plain.files[name], text)
	}
	for _, name := range slices.Sorted(maps.Keys(got.files)) {
		if _, ok := plain.files[name]; !ok {
			t.Errorf("file %s was not there in the plain run", name)
		}
	}
}

// difference shows both sides from a little before the first byte that differs.
func difference(t *testing.T, what, plain, got string) {
	t.Helper()
	if plain == got {
		return
	}
	at := 0
	for at < len(plain) && at < len(got) && plain[at] == got[at] {
		at++
	}
	around := func(s string) string { return s[max(0, at-80):min(len(s), at+240)] }
	t.Errorf("%s differs at byte %d (%d bytes, plainly %d)\nplainly: %q\nnow:     %q",
		what, at, len(got), len(plain), around(plain), around(got))
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// removeAll removes a tree whose directories a program may have made read-only.
func removeAll(t testing.TB, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err == nil {
		err = os.RemoveAll(root)
	}
	if err != nil {
		t.Error(err)
	}
}
