package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// miscounts prints a wrong total unless its argument is 3 or less.
const miscounts = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int total;
__attribute__((noinline)) static void add(int n)
{
	total += n > 3 ? n - 1 : n;
}
static inline __attribute__((always_inline)) void tell(int want)
{
	printf("total %d of %d\n", total, want); // TELLS
}
__attribute__((noinline)) static void report(int want)
{
	if (total == want)
		puts("right");
	else
		tell(want);
}
int main(int argc, char **argv)
{
	int want = 0;
	puts("begins");
	for (int i = 1; i <= atoi(argv[1]); i++) {
		add(i);
		want += i;
	}
	report(want);
	puts("ends");
	fflush(stdout);
	if (total != want && argc > 2) {
		FILE *f = fopen(argv[2], "w");
		fprintf(f, "%d\n", total);
		fclose(f);
	}
	const char *pieces[] = { "a ", "slow ", "line\n" };
	for (int i = 0; i < 3; i++)
		if (write(2, pieces[i], strlen(pieces[i])) < 0)
			return 9;
	return 0;
}
`

func TestRecordDeclaresFailures(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "miscounts.c", Text: miscounts, Flags: []string{"-O2"}})
	left := filepath.Join(t.TempDir(), "left")
	expected := filepath.Join(t.TempDir(), "expected")
	if err := os.WriteFile(expected, []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		rules, args []string
		status      int
		name        string
		want        record.Declared
	}{
		{[]string{"--fail-if", "nothing", "--fail-if", "total [0-9]+ of"}, []string{"5"}, 1, "miscounts-0001-failed-output",
			record.Declared{Rule: record.RuleOutput, Pattern: "total [0-9]+ of", Line: "total 13 of 15", Descriptor: 1, Thread: 1}},
		{[]string{"--until-fail", "--fail-if", "^a slow line$"}, []string{"3"}, 1, "miscounts-0001-failed-output",
			record.Declared{Rule: record.RuleOutput, Pattern: "^a slow line$", Line: "a slow line", Descriptor: 2, Thread: 1}},
		{[]string{"--fail-if", "total"}, []string{"3"}, 0, "", record.Declared{}},
		{[]string{"--fail-if-file", left}, []string{"5", left}, 1, "miscounts-0001-failed-file", record.Declared{Rule: record.RuleFile, Path: record.Text(left)}},
		{[]string{"--fail-if-file", left}, []string{"3", left}, 0, "", record.Declared{}}, // the file existed before the run
		{[]string{"--fail-if-file", left + "=" + expected}, []string{"5", left}, 1, "miscounts-0001-failed-file",
			record.Declared{Rule: record.RuleFile, Path: record.Text(left), Expected: record.Text(expected), Offset: 1}},
		{[]string{"--fail-if-file", expected + "=" + expected}, []string{"5"}, 0, "", record.Declared{}},
		{[]string{"--fail-if-file", left + ".not=" + expected}, []string{"5"}, 1, "miscounts-0001-failed-file",
			record.Declared{Rule: record.RuleFile, Path: record.Text(left + ".not"), Expected: record.Text(expected), Missing: true}},
		{[]string{"--check", "true", "--check", "exit 7"}, []string{"3"}, 1, "miscounts-0001-failed-check", record.Declared{Rule: record.RuleCheck, Command: "exit 7", Status: 7}},
		{[]string{"--check", "true"}, []string{"5"}, 0, "", record.Declared{}},
		{[]string{"--all", "--check", "true"}, []string{"5"}, 0, "miscounts-0001-passed", record.Declared{}},
	} {
		cmd := recordCommand(t, append(append(x.rules, "--", exe), x.args...)...)
		status, _, said := ended(t, cmd)
		names := recordings(t, cmd)
		if status.ExitStatus() != x.status || strings.Join(names, " ") != x.name {
			t.Errorf("%q: status %d, %q; want %d, %q\n%s", x.rules, status.ExitStatus(), names, x.status, x.name, said)
			continue
		}
		if x.name == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(cmd.Dir, "recordings", x.name, record.ManifestName))
		var m struct{ Outcome record.Outcome }
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		d := m.Outcome.Declared
		if (d != nil) != (x.want.Rule != "") {
			t.Errorf("%q: declared %+v, want %+v", x.rules, d, x.want)
		}
		if d == nil {
			continue
		}
		if x.want.Ordinal, x.want.Address = d.Ordinal, d.Address; *d != x.want || (d.Rule == record.RuleOutput) != (d.Ordinal > 0 && d.Address != 0) {
			t.Errorf("%q: declared %+v, want %+v", x.rules, d, x.want)
		}
	}
	for _, rules := range [][]string{{"--fail-if", "("}, {"--fail-if", "x*"}, {"--fail-if-file", "=a"}, {"--fail-if-file", "a="}, {"--check", " "}} {
		if got := diagnose(t, nil, append(append([]string{"record"}, rules...), "--", exe, "3")...); got.status != exitUsage || !strings.Contains(got.stderr, rules[0]) {
			t.Errorf("%q: status %d, %s", rules, got.status, got.stderr)
		}
	}
}

// A signal ends a check and the processes that the check started, and the run is not reported as
// passed.
func TestRecordCheckIsInterrupted(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "miscounts.c", Text: miscounts, Flags: []string{"-O2"}})
	for _, x := range []struct {
		signal syscall.Signal
		flags  []string
	}{{unix.SIGTERM, nil}, {unix.SIGINT, nil}, {unix.SIGTERM, []string{"--until-fail"}}} {
		began := filepath.Join(t.TempDir(), "began")
		cmd := recordCommand(t, append(x.flags, "--check", "sleep 300 & echo $! >"+began+".new; mv "+began+".new "+began+"; wait", "--", exe, "3")...)
		var said bytes.Buffer
		cmd.Stderr, cmd.WaitDelay = &said, time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var sleeps int
		for waited := 0; sleeps == 0; waited++ {
			if text, err := os.ReadFile(began); err == nil {
				fmt.Sscan(string(text), &sleeps)
			} else if waited > 6000 {
				cmd.Process.Kill()
				t.Fatal("the check does not begin")
			}
			time.Sleep(10 * time.Millisecond)
		}
		cmd.Process.Signal(x.signal)
		limit := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		cmd.Wait()
		limit.Stop()
		if status := cmd.ProcessState.ExitCode(); status != exitInterrupted && x.flags == nil || status == 0 || !strings.Contains(said.String(), "whether the run failed is not known") {
			t.Errorf("%v, %q: %v, %s", x.signal, x.flags, cmd.ProcessState, &said)
		}
		// It is a zombie until its new parent has waited for it.
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", sleeps)); err == nil && !strings.Contains(string(state), ") Z ") {
			t.Errorf("what the check started is still there: %s", state)
			unix.Kill(sleeps, unix.SIGKILL)
		}
	}
}

// Without a recording the output is not known, so the run is not reported as passed.
func TestFailIfWithoutRecording(t *testing.T) {
	rules := failRules{output: []string{"total"}}
	if err := rules.compile(); err != nil {
		t.Fatal(err)
	}
	err := rules.judge(t.Context(), &recorder.Result{}, nil)
	if err == nil || !strings.Contains(err.Error(), "no recording of the run") || exitStatus(err) != exitInternal {
		t.Errorf("%v", err)
	}
}

// A run that ended well is diagnosed if it is declared as failed.
func TestCrashOfADeclaredFailure(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "miscounts.c", Text: miscounts, Flags: []string{"-O1"}})
	recorded := func(rules ...string) string {
		cmd := recordCommand(t, append(rules, "--", exe, "5")...)
		ended(t, cmd)
		return filepath.Join(cmd.Dir, "recordings", recordings(t, cmd)[0])
	}
	passed := recorded("--all")
	before, _, _ := strings.Cut(miscounts, "// TELLS")
	line := fmt.Sprintf("miscounts.c:%d", strings.Count(before, "\n")+1)
	for _, x := range []struct {
		name string
		args []string
		says []string
	}{
		// The text is written when the buffer is: the report begins where it was put there.
		{"output", []string{"--recording", recorded("--fail-if", "total 1")}, []string{`the run failed in tell: it wrote "total 13 of 15", which matches 'total 1' (--fail-if)`, "declared-failure", line, " report", "writes to stdout", "total "}},
		{"piece", []string{"--recording", recorded("--fail-if", "slow")}, []string{`the run failed in main: it wrote "a slow line"`}},
		{"check", []string{"--recording", recorded("--check", "false")}, []string{"the run failed in main: it did not pass the check 'false'"}},
		{"function", []string{"--recording", passed, "--failed-at", "add"}, []string{"the run failed in add: it came to add (--failed-at)", "total"}},
		{"inlined function", []string{"--recording", passed, "--failed-at", "tell"}, []string{"it came to tell (--failed-at)", " report", "total"}},
		{"line", []string{"--recording", passed, "--failed-at", line}, []string{"it came to " + line, " report"}},
		{"moment", []string{"--recording", passed, "--failed-at", "1:2"}, []string{"it came to 1:2"}},
	} {
		got := diagnose(t, nil, append([]string{"crash"}, x.args...)...)
		for _, says := range x.says {
			if got.status != exitOK || !strings.Contains(got.stdout, says) {
				t.Errorf("%s: status %d, %q is not in %s%s", x.name, got.status, says, got.stdout, got.stderr)
			}
		}
	}
	for _, x := range []struct{ args, says string }{
		{"", "--failed-at FUNCTION|FILE:LINE|MOMENT"}, {"", "--fail-if REGEXP"}, {"", "--fail-if-file PATH"}, {"", "--check COMMAND"},
		{"repor", "like it are report"}, {"miscounts.c:1", "line 1 of miscounts.c has no code"}, {"none.c:1", "no source file of the program is called none.c"}, {"1:99999", "has no event 99999 of thread 1"},
	} {
		args := []string{"crash", "--recording", passed}
		if x.args != "" {
			args = append(args, "--failed-at", x.args)
		}
		if got := diagnose(t, nil, args...); got.status != exitInput || !strings.Contains(got.stderr, x.says) || got.stdout != "" {
			t.Errorf("%q: status %d, %q is not in %s", x.args, got.status, x.says, got.stderr)
		}
	}
	// An inlined function is scanned where its code is.
	if got := diagnose(t, nil, "crash", "--core", filepath.Join(passed, "core"), "--function", "tell"); !strings.Contains(got.stdout, "scanned report") {
		t.Errorf("--function of an inlined function: %s%s", got.stdout, got.stderr)
	}
}
