package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/debug/debugtest"
	"diagnose/replay"
)

// missingEditorError says that this machine lacks an editor, or a part of one, to test with.
type missingEditorError struct{ err error }

func (e *missingEditorError) Error() string { return "no editor to test with: " + e.err.Error() }

// skipWithout skips a test if an editor is missing; where DIAGNOSE_EDITORS is set, as in CI, it fails.
func skipWithout(t *testing.T, err error) {
	t.Helper()
	var missing *missingEditorError
	switch {
	case err == nil:
	case errors.As(err, &missing) && os.Getenv("DIAGNOSE_EDITORS") == "":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// editorLimit bounds what an editor's commands take.
const editorLimit = 3 * time.Minute

// runEditor runs a command of an editor in a folder and returns its output.
func runEditor(t *testing.T, dir string, environ []string, command ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), editorLimit)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environ...)
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}

// vscodeClient returns a folder with the client of VS Code's own tests, which npm installs as its lock file says.
func vscodeClient(t *testing.T) (string, error) {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", &missingEditorError{err}
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/dap")); err != nil {
		return "", err
	}
	out, err := runEditor(t, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"))
	if err != nil {
		return "", &missingEditorError{fmt.Errorf("npm has no access to its registry: %w: %s", err, out)}
	}
	return dir, nil
}

// adapter records total.c and returns the recording, a command that is a debug adapter for it, and the source.
func adapter(t *testing.T) (dir, command, source string) {
	t.Helper()
	if _, err := debugtest.FindGDB(); errors.Is(err, debugtest.ErrNoGDB) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../../debug/testdata/total.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "total")
	if out, err := exec.Command("gcc", "-g", "-O0", "-pthread", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	record := recordCommand(t, "--output", "recordings", "--", exe)
	_ = record.Run() // the program dies
	names := recordings(t, record)
	if len(names) != 1 {
		t.Fatalf("recordings %q, want one", names)
	}
	dir = filepath.Join(record.Dir, "recordings", names[0])
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = filepath.Join(t.TempDir(), "adapter")
	script := fmt.Sprintf("#!/bin/sh\nDIAGNOSE_TEST_MAIN=1 exec %s debug --dap %s\n", shellQuote(self), shellQuote(dir))
	if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, command, source
}

// The client of VS Code's tests opens a recording at the failure and moves through it, and the recording is as before.
func TestDebugVSCodeClient(t *testing.T) {
	dir, command, source := adapter(t)
	client, err := vscodeClient(t)
	skipWithout(t, err)
	var environ []string
	if replay.WatchesWork() == nil {
		environ = []string{"WATCHES=1"}
	}
	out, err := runEditor(t, client, environ, "node", "client.js", command, source)
	if err != nil || !strings.Contains(out, "all steps are done") {
		t.Errorf("%v: %s", err, out)
	}
	if got := diagnose(t, nil, "replay", dir, "--verify"); got.status != exitOK {
		t.Errorf("the replay is not identical:\n%s", got.stdout)
	}
}

// dapModeMissing is emacs.el's exit status if Emacs has no dap-mode.
const dapModeMissing = 77

// Emacs opens a recording at the failure and goes back.
func TestDebugEmacs(t *testing.T) {
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		skipWithout(t, &missingEditorError{err})
	}
	_, command, source := adapter(t)
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS("testdata/dap")); err != nil {
		t.Fatal(err)
	}
	out, err := runEditor(t, home, []string{"HOME=" + home}, emacs, "--batch", "-l", filepath.Join(home, "emacs.el"), command, source)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == dapModeMissing {
		skipWithout(t, &missingEditorError{errors.New("emacs has no dap-mode")})
	}
	if err != nil || !strings.Contains(out, "all steps are done") {
		t.Errorf("%v: %s", err, out)
	}
}
