package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// The test binary is the command as well, so that exit statuses are real.
func TestMain(m *testing.M) {
	if os.Getenv("DIAGNOSE_TEST_MAIN") != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

type outcome struct {
	status         int
	stdout, stderr string
}

func diagnose(t *testing.T, stdin []byte, args ...string) outcome {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1")
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

const nullRead = `
struct user { int id; const char *name; };
struct session { int id; struct user *user; };
static struct session current;
__attribute__((noinline)) int handle_login(struct session *session)
{
	return session->user->name[0];
}
int main(void) { return handle_login(&current); }
`

func crashed(t *testing.T) string {
	t.Helper()
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: nullRead, Flags: []string{"-O0"}})
	return crashtest.Core(t, exe, crashtest.Run{})
}

func TestCrashReport(t *testing.T) {
	core := crashed(t)
	got := diagnose(t, nil, "crash", "--core", core)
	if got.status != exitOK || got.stderr != "" {
		t.Fatalf("status %d, stderr %q", got.status, got.stderr)
	}
	for _, want := range []string{"null pointer read of session->user->name in handle_login", "login.c:7", "#1", "main"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the report lacks %q:\n%s", want, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "\x1b[") {
		t.Error("colours go into a pipe")
	}
}

func TestCoreFromStandardInput(t *testing.T) {
	data, err := os.ReadFile(crashed(t))
	if err != nil {
		t.Fatal(err)
	}
	got := diagnose(t, data, "crash", "--core", "-", "--format", "json")
	var doc reports.Document
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil {
		t.Fatalf("status %d, stderr %q: %v", got.status, got.stderr, err)
	}
	if doc.SchemaVersion != reports.SchemaVersion || doc.Case.Failure.Kind != "null-pointer" {
		t.Errorf("schema %s, kind %s", doc.SchemaVersion, doc.Case.Failure.Kind)
	}
}

func TestOutputFile(t *testing.T) {
	core := crashed(t)
	path := filepath.Join(t.TempDir(), "report.md")
	if got := diagnose(t, nil, "crash", "--core", core, "--format", "markdown", "--output", path); got.status != 0 || got.stdout != "" {
		t.Fatalf("status %d, stdout %q, stderr %q", got.status, got.stdout, got.stderr)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want a private file", info, err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".diagnose-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := diagnose(t, nil, "crash", "--core", core, "--output", "/dev/full"); got.status != exitInternal || !strings.Contains(got.stderr, "no space left") {
		t.Errorf("a full device: status %d, stderr %q", got.status, got.stderr)
	}
}

func TestExitStatus(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--version"}, exitOK, ""},
		{[]string{"crash", "--help"}, exitOK, ""},
		{[]string{"no-such-command"}, exitUsage, "no-such-command"},
		{[]string{"crash"}, exitUsage, "--core"},
		{[]string{"crash", "--core", "x", "--pid", "1"}, exitUsage, "pid"},
		{[]string{"crash", "--core", "x", "--format", "xml"}, exitUsage, "xml"},
		{[]string{"crash", "--pid", "-3"}, exitUsage, "negative"},
		{[]string{"crash", "--no-such-flag"}, exitUsage, "no-such-flag"},
		{[]string{"crash", "extra"}, exitUsage, "extra"},
		{[]string{"crash", "--core", filepath.Join(dir, "missing")}, exitInput, "missing"},
		{[]string{"crash", "--core", empty}, exitInput, "empty"},
		{[]string{"crash", "--core", dir}, exitInput, "directory"},
		{[]string{"crash", "--pid", "4194304"}, exitInput, "4194304"},
	} {
		got := diagnose(t, nil, x.args...)
		if got.status != x.status || !strings.Contains(got.stderr, x.says) {
			t.Errorf("diagnose %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, x.says)
		}
	}
}

func TestManPagesAndCompletion(t *testing.T) {
	dir := t.TempDir()
	if got := diagnose(t, nil, "man", dir); got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "diagnose-crash.1"))
	if err != nil || !bytes.Contains(page, []byte("Exit status")) {
		t.Errorf("the man page lacks the exit statuses: %v", err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := diagnose(t, nil, "completion", shell); got.status != exitOK || !strings.Contains(got.stdout, "diagnose") {
			t.Errorf("completion %s: status %d", shell, got.status)
		}
	}
}
