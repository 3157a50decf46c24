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
	"diagnose/replay/recorder"
	"diagnose/reports"
)

// The test binary acts as the command as well, so that exit statuses are real.
func TestMain(m *testing.M) {
	recorder.Init()
	if os.Getenv("DIAGNOSE_TEST_MAIN") != "" {
		os.Exit(run(os.Args[1:]))
	}
	crashtest.Main(m)
}

type outcome struct {
	status         int
	stdout, stderr string
}

func diagnose(t *testing.T, stdin []byte, args ...string) outcome {
	t.Helper()
	return diagnoseFed(t, stdin, nil, args...)
}

// diagnoseWith runs the command with additional environment variables.
func diagnoseWith(t *testing.T, environ []string, args ...string) outcome {
	t.Helper()
	return diagnoseFed(t, nil, environ, args...)
}

func diagnoseFed(t *testing.T, stdin []byte, environ []string, args ...string) outcome {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(append(os.Environ(), "DIAGNOSE_TEST_MAIN=1"), environ...)
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
		t.Errorf("not removed: %v", left)
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
	missing := filepath.Join(dir, "missing")
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--version"}, exitOK, ""},
		{[]string{"crash", "--help"}, exitOK, ""},
		{[]string{"no-such-command"}, exitUsage, `unknown command "no-such-command"`},
		{[]string{"crsh"}, exitUsage, "did you mean crash?"},
		{[]string{"help", "crsh"}, exitUsage, "unknown command \"crsh\", did you mean crash?"},
		{[]string{"help", "recording", "shw"}, exitUsage, "did you mean show?"},
		{[]string{"recording", "shw"}, exitUsage, "unknown command \"shw\", did you mean show?"},
		{[]string{"corpus", "lst"}, exitUsage, "did you mean list?"},
		{[]string{"completion", "zs"}, exitUsage, "did you mean zsh?"},
		{[]string{"agent", "pth"}, exitUsage, `unknown command "pth", did you mean path?`},
		{[]string{"agent", "buidl"}, exitUsage, `unknown command "buidl", agent takes path (see 'diagnose agent --help')`},
		{[]string{"tracker"}, exitUsage, `unknown command "tracker" (see`},
		{[]string{"check", "x"}, exitUsage, `unknown command "check", did you mean recording check?`},
		{[]string{"show", "x"}, exitUsage, "did you mean corpus show or recording show?"},
		{[]string{"import", "x"}, exitUsage, "did you mean corpus import?"},
		{[]string{"recording", "gc"}, exitUsage, "did you mean corpus gc?"},
		{[]string{"version"}, exitUsage, "did you mean --version?"},
		{[]string{"report", "--help"}, exitUsage, `unknown command "report"`},
		{[]string{"check", "-h"}, exitUsage, "did you mean recording check?"},
		{[]string{"recording", "shw", "--help"}, exitUsage, "did you mean show?"},
		{[]string{"recording", "--help"}, exitOK, ""},
		{[]string{"--help"}, exitOK, ""},
		{[]string{"crash", "--core", "x", "--format", "yaml"}, exitUsage, `not "yaml" (see`},
		{[]string{"crash", "--cor", "x"}, exitUsage, "unknown flag: --cor, did you mean --core or --coredumpctl?"},
		{[]string{"crash", "-core", "x"}, exitUsage, "did you mean --core?"},
		{[]string{"run", "--onerror=log", "--", "/bin/true"}, exitUsage, "did you mean --on-error?"},
		{[]string{"run", "--on-error", "Log", "--", "/bin/true"}, exitUsage, `--on-error takes abort, log or continue, not "Log", did you mean log?`},
		{[]string{"run", "--option", "fill_byte=1", "--", "/bin/true"}, exitUsage, "did you mean fill_bytes?"},
		{[]string{"--core", "x"}, exitUsage, "did you mean 'diagnose crash --core'?"},
		{[]string{"crash", "--core", "x", "--format", "htm"}, exitUsage, `not "htm", did you mean html?`},
		{[]string{"hunt", "--strategy", "rnadom", "--", "/bin/true"}, exitUsage, "did you mean random?"},
		{[]string{"replay", "--timing", "layz", "."}, exitUsage, "did you mean lazy?"},
		{[]string{"completion", "no-such-shell"}, exitUsage, "no-such-shell"},
		{[]string{"crash"}, exitUsage, "give one of --core FILE, --pid N, --coredumpctl N and --recording DIR"},
		{[]string{"crash", "--passing", "."}, exitUsage, "--passing is for a comparison"},
		{[]string{"crash", "--pid", "1", "--recording", "."}, exitUsage, "--recording goes with --core or by itself"},
		{[]string{"crash", "--recording", "no-such-directory"}, exitInput, "no-such-directory"},
		{[]string{"crash", "--core", "x", "--pid", "1"}, exitUsage, "--core and --pid exclude each other"},
		{[]string{"crash", "--core", ""}, exitUsage, "the name of the file is empty"},
		{[]string{"crash", "--core", "x", "--format", "xml"}, exitUsage, `--format takes text, markdown, json, html or sarif, not "xml" (see`},
		{[]string{"crash", "--pid", "0"}, exitUsage, "--pid takes a whole number from 1 on, not 0"},
		{[]string{"crash", "--pid", "init"}, exitUsage, `--pid takes a whole number, not "init"`},
		{[]string{"crash", "--core", "x", "--depth", "-1"}, exitUsage, "--depth takes a whole number from 0 on, not -1"},
		{[]string{"crash", "--core", "x", "--no-color=maybe"}, exitUsage, `--no-color takes true or false, not "maybe"`},
		{[]string{"crash", "--no-such-flag"}, exitUsage, "no-such-flag"},
		{[]string{"crash", "extra"}, exitUsage, `unexpected argument "extra" (see`},
		{[]string{"crash", empty}, exitUsage, "did you mean --core " + empty + "?"},
		{[]string{"crash", "17"}, exitUsage, "did you mean --pid 17?"},
		{[]string{"crash", "--core", empty, "--output", dir}, exitUsage, dir + " is a directory"},
		{[]string{"crash", "--core", empty, "--output", filepath.Join(missing, "report")}, exitUsage, "in the directory " + missing},
		{[]string{"crash", "--core", empty, "--exe", missing}, exitInput, "--exe: stat " + missing},
		{[]string{"crash", "--core", empty, "--exe", dir}, exitInput, "not a regular file"},
		{[]string{"crash", "--core", empty, "--sysroot", missing}, exitInput, "--sysroot: stat " + missing},
		{[]string{"crash", "--core", empty, "--debug-dir", dir, "--debug-dir", empty}, exitInput, "--debug-dir: " + empty + " is not a directory"},
		{[]string{"crash", "--core", missing}, exitInput, missing},
		{[]string{"crash", "--core", missing + "\x1b[31m"}, exitInput, `missing\x1b[31m`},
		{[]string{"crash", "--core", empty}, exitInput, "the file is empty"},
		{[]string{"crash", "--core", dir}, exitInput, "is a directory"},
		{[]string{"crash", "--pid", "4194304"}, exitInput, "no process 4194304"},
	} {
		got := diagnose(t, nil, x.args...)
		if got.status != x.status || !strings.Contains(got.stderr, x.says) {
			t.Errorf("diagnose %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, x.says)
		}
		if x.status != exitOK && got.stdout != "" {
			t.Errorf("diagnose %s: an error with %q on standard output", strings.Join(x.args, " "), got.stdout)
		}
	}
}

func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if got := diagnose(t, nil, "man", dir); got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "diagnose-crash.1"))
	if err != nil {
		t.Fatal(err)
	}
	// A leading newline: the list keeps its lines.
	for _, want := range []string{"Exit status", "\n  3  the input cannot be used", "\nDEBUGINFOD_URLS", "fB--sysroot"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the man page lacks %q", want)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := diagnose(t, nil, "completion", shell)
		if got.status != exitOK || !strings.Contains(got.stdout, "diagnose") {
			t.Errorf("completion %s: status %d", shell, got.status)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		check := exec.Command(shell, "-n")
		check.Stdin = strings.NewReader(got.stdout)
		if text, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not take its script: %v\n%s", shell, err, text)
		}
	}
	// typed is what the completion scripts ask the command. The last line of the answer says what
	// else the shell may offer: 0 is files, 4 nothing, 16 directories.
	for _, x := range []struct{ typed, want string }{
		{"crash --format ", "text\nmarkdown\njson\nhtml\nsarif\n:4\n"},
		{"crash --core ", ":0\n"},
		{"crash --pid ", ":4\n"},
		{"crash --sysroot ", ":16\n"},
		{"crash ", ":4\n"},
		{"crash --debu", "--debug-dir\n:4\n"},
	} {
		got := diagnose(t, nil, append([]string{"__completeNoDesc"}, strings.Split(x.typed, " ")...)...)
		if got.status != exitOK || got.stdout != x.want {
			t.Errorf("%q completes to %q (status %d), want %q", x.typed, got.stdout, got.status, x.want)
		}
	}
}
