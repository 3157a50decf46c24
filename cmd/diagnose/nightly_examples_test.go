package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"diagnose/internal/crashtest"
	"diagnose/reports/tracker"
)

// example reads a file of examples/nightly.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/examples/nightly", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// calls matches the commands of diagnose in a script, without the shell's redirections and pipes.
var calls = regexp.MustCompile(`(?m)(?:^|[\s;])(?:/usr/local/bin/)?diagnose ((?:nightly|corpus|record)\b[^|>\n]*?)\s*(?:\|\||2?>|$)`)

// acceptable says which of a script's commands does not exist, or does not take its flags.
func acceptable(script string, want int) error {
	found := calls.FindAllStringSubmatch(script, -1)
	if len(found) != want {
		return fmt.Errorf("%d commands, want %d: %q", len(found), want, found)
	}
	for _, m := range found {
		args := strings.Fields(strings.ReplaceAll(m[1], `"`, ""))
		c, rest, err := newRoot().Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", args, err)
		}
		if c.HasSubCommands() {
			return fmt.Errorf("%q: there is no such command", args)
		}
	}
	return nil
}

func accepted(t *testing.T, script string, want int) {
	t.Helper()
	if err := acceptable(script, want); err != nil {
		t.Error(err)
	}
}

// A rotten example must not pass.
func TestExamplesAreLookedAt(t *testing.T) {
	for _, script := range []string{"diagnose nightly --budgets 4h\n", "diagnose corpus ad x || true\n", "  diagnose nightly --budget four 2>log\n", "echo\n"} {
		if acceptable(script, 1) == nil {
			t.Errorf("%q is accepted", script)
		}
	}
}

// keysOf reads the sections of a unit of systemd.
func keysOf(text string) map[string]string {
	keys := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			keys[key] = value
		}
	}
	return keys
}

func TestExampleOfSystemd(t *testing.T) {
	service, timer := example(t, "diagnose-nightly.service"), example(t, "diagnose-nightly.timer")
	keys := keysOf(service)
	accepted(t, keys["ExecStart"], 1)
	if keys["SuccessExitStatus"] != strconv.Itoa(exitNewCause) || keys["Delegate"] != "memory" {
		t.Errorf("%+v", keys)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// systemd requires that the command exists.
	service = strings.ReplaceAll(service, "/usr/local/bin/diagnose", exe)
	verify := func(service string) string {
		t.Helper()
		for name, text := range map[string]string{"diagnose-nightly.service": service, "diagnose-nightly.timer": timer} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "diagnose-nightly.service"), filepath.Join(dir, "diagnose-nightly.timer"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return err.Error() + "\n" + string(out)
		}
		// systemd also complains about other units on this machine.
		var ours []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "diagnose-nightly") {
				ours = append(ours, line)
			}
		}
		return strings.Join(ours, "")
	}
	if says := verify(strings.Replace(service, "Delegate=", "Delegated=", 1)); !strings.Contains(says, "Delegated") {
		t.Skip(&crashtest.UnsupportedError{What: "systemd-analyze does not check units here: " + says})
	}
	if says := verify(service); says != "" {
		t.Error(says)
	}
	if out, err := exec.Command(analyze, "calendar", keysOf(timer)["OnCalendar"]).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// cronLine matches a line of /etc/cron.d (crontab(5)).
var cronLine = regexp.MustCompile(`(?m)^([0-9*/,-]+ ){5}([a-z_][a-z0-9_-]*) (.+)$`)

func TestExampleOfCron(t *testing.T) {
	m := cronLine.FindStringSubmatch(example(t, "diagnose-nightly.cron"))
	if m == nil || m[2] != "diagnose" || strings.Contains(m[3], "%") { // a % would end the command
		t.Fatalf("%q", m)
	}
	accepted(t, m[3], 1)
}

// step is a step of a job in GitHub Actions.
type step struct {
	Name, Uses, Run, If string
	With, Env           map[string]string
}

type workflow struct {
	Name string
	On   struct {
		Push     any
		Dispatch any `yaml:"workflow_dispatch"`
		Schedule []struct{ Cron string }
	}
	Env  map[string]string
	Jobs map[string]struct {
		If          string
		RunsOn      []string `yaml:"runs-on"`
		Timeout     int      `yaml:"timeout-minutes"`
		Concurrency string
		Permissions map[string]string
		Steps       []step
	}
}

type gitlabJob struct {
	Tags      []string
	Rules     []struct{ If string }
	Timeout   string
	Group     string `yaml:"resource_group"`
	Variables map[string]string
	Script    []string
	After     []string `yaml:"after_script"`
	Allow     struct {
		Codes int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	Artifacts struct {
		When   string
		Paths  []string
		Expire string `yaml:"expire_in"`
	}
}

// decode reads YAML and refuses unknown keys.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// host is a machine that the examples run on: a checkout whose tests crash, and
// diagnose in the PATH.
type host struct{ dir, checkout, srv string }

func newHost(t *testing.T) *host {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h := &host{dir: dir, checkout: filepath.Join(dir, "checkout"), srv: filepath.Join(dir, "srv")}
	for _, d := range []string{h.checkout, h.srv, filepath.Join(dir, "bin")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"bin/diagnose":      "#!/bin/sh\nDIAGNOSE_TEST_MAIN=1 exec '" + exe + "' \"$@\"\n",
		"checkout/tests.c":  "struct user { const char *name; } *current;\nint main(void) { return current->name[0]; }\n",
		"checkout/Makefile": "all:\n\tmkdir -p $(BUILD)\n\tcc -g -O0 -o $(BUILD)/run-tests tests.c\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// sh runs a script as the runners do.
func (h *host) sh(t *testing.T, script string, env map[string]string) (status int, output string) {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", strings.ReplaceAll(script, "/usr/local/bin/diagnose", "diagnose"))
	cmd.Dir = h.checkout
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH"))
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+strings.ReplaceAll(v, "/srv/diagnose", h.srv))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() { // the last command took the shell's place
		return 128 + int(w.Signal()), out.String()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func (h *host) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func merged(list ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range list {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// The workflow runs: tests that crash are recorded and kept, and the night reports them. The
// command lines of cron and of systemd then find nothing new.
func TestExampleOfGitHubActions(t *testing.T) {
	text := example(t, "github-actions.yml")
	accepted(t, text, 4)
	var w workflow
	decode(t, text, &w)
	test, night := w.Jobs["test"], w.Jobs["nightly"]
	if len(w.On.Schedule) != 1 || !cronLine.MatchString(w.On.Schedule[0].Cron+" user command") || len(test.Steps) != 4 || len(night.Steps) != 2 || night.Permissions["issues"] != "write" {
		t.Fatalf("%+v", w)
	}
	if spec := night.Steps[0].Env["TRACKER"]; spec != "github:${{ github.repository }}" {
		t.Errorf("%q", spec)
	}
	if _, err := tracker.Open("github:acme/server", tracker.Options{}); err != nil {
		t.Error(err)
	}
	h := newHost(t)
	env := merged(w.Env, map[string]string{"GITHUB_SHA": "00ff", "GITHUB_RUN_ID": "17", "RUNNER_TEMP": h.dir, "GITHUB_STEP_SUMMARY": filepath.Join(h.dir, "step"), "TRACKER": "dir:" + filepath.Join(h.dir, "issues")})
	for i, want := range []int{0, 139, 0} {
		if status, out := h.sh(t, test.Steps[i+1].Run, env); status != want {
			t.Fatalf("%s: status %d, want %d: %s", test.Steps[i+1].Name, status, want, out)
		}
	}
	if status, out := h.sh(t, night.Steps[0].Run, env); status != exitNewCause {
		t.Fatalf("the night: status %d: %s", status, out)
	}
	if text := h.read(t, "step"); !strings.Contains(text, "    1 new cause, 0 back, 0 known") {
		t.Errorf("the summary of the step: %s", text)
	}
	if text := h.read(t, "night/summary.html"); !strings.Contains(text, `href="causes/`) {
		t.Errorf("the page: %s", text)
	}
	if issues, err := os.ReadDir(filepath.Join(h.dir, "issues")); err != nil || len(issues) != 1 {
		t.Errorf("%v, %v", issues, err)
	}
	for name, command := range map[string]string{"cron": cronLine.FindStringSubmatch(example(t, "diagnose-nightly.cron"))[3], "systemd": keysOf(example(t, "diagnose-nightly.service"))["ExecStart"]} {
		status, out := h.sh(t, strings.ReplaceAll(command, "/srv/diagnose", h.srv), nil)
		if status != exitOK || !strings.Contains(out, "0 new causes, 0 back, 1 known") {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
	// An error is reported as well if standard error goes to a log.
	command := strings.ReplaceAll(cronLine.FindStringSubmatch(example(t, "diagnose-nightly.cron"))[3], "/srv/diagnose/corpus", "/srv/diagnose/missing")
	if status, out := h.sh(t, strings.ReplaceAll(command, "/srv/diagnose", h.srv), nil); status != exitOK || !strings.Contains(out, "is no corpus") {
		t.Errorf("without a corpus: status %d: %q", status, out)
	}
}

func TestExampleOfGitLab(t *testing.T) {
	text := example(t, "gitlab-ci.yml")
	accepted(t, text, 4)
	var file struct {
		Variables     map[string]string
		Test, Nightly gitlabJob
	}
	decode(t, text, &file)
	night := &file.Nightly
	if night.Allow.Codes != exitNewCause || len(night.Script) != 1 || len(night.After) != 1 || len(file.Test.Script) != 2 || len(file.Test.After) != 1 || night.Variables["TRACKER"] != "gitlab:$CI_PROJECT_URL" {
		t.Fatalf("%+v", file)
	}
	if _, err := tracker.Open("gitlab:https://gitlab.example.org/group/sub/project", tracker.Options{}); err != nil {
		t.Error(err)
	}
	h := newHost(t)
	env := merged(file.Variables, map[string]string{"CI_COMMIT_SHA": "00ff", "CI_JOB_ID": "17", "CI_JOB_STATUS": "failed", "CI_PROJECT_DIR": h.dir, "TRACKER": "dir:" + filepath.Join(h.dir, "issues")})
	for _, x := range []struct {
		script []string
		status int
	}{{file.Test.Script, 139}, {file.Test.After, 0}, {night.Script, exitNewCause}, {night.After, 0}} {
		if status, out := h.sh(t, strings.Join(x.script, "\n"), env); status != x.status {
			t.Fatalf("%q: status %d, want %d: %s", x.script, status, x.status, out)
		}
	}
	if !strings.Contains(h.read(t, filepath.Join(night.Artifacts.Paths[0], "summary.txt")), "1 new cause") {
		t.Error("the artifact has no new cause")
	}
}
