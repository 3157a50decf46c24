package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// A recording that crash cannot use is refused with the path to give instead.
func TestCrashNamesTheRecordingMeant(t *testing.T) {
	cmd := recordCommand(t, "--output", "recordings", "--", "sh", "-c", "sh -c 'kill -SEGV $$'; exit 0")
	cmd.Run()
	names := recordings(t, cmd)
	if len(names) != 1 || !strings.HasSuffix(names[0], "-child-SIGSEGV") {
		t.Fatalf("recordings %q, want one of a child", names)
	}
	above := filepath.Join(cmd.Dir, "recordings")
	dir := filepath.Join(above, names[0])
	for _, x := range []struct {
		args   []string
		status int
		says   []string
	}{
		{[]string{"--recording", dir, "--process", "1"}, exitInput, []string{dir + " has no process 1"}},
		{[]string{"--recording", above}, exitInput, []string{"is no recording; there are some in it: " + dir}},
		{[]string{"--recording", t.TempDir()}, exitInput, []string{"is no recording: it has no manifest.json"}},
		{[]string{dir}, exitUsage, []string{"did you mean --recording " + dir + "?"}},
	} {
		got := diagnose(t, nil, append([]string{"crash"}, x.args...)...)
		for _, says := range x.says {
			if got.status != x.status || !strings.Contains(got.stderr, says) || got.stdout != "" {
				t.Errorf("crash %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, says)
			}
		}
	}
}

// Without its program a recording gives no pass. That is not reported as a search that found
// nothing.
func TestCrashOfAProgramBuiltAnew(t *testing.T) {
	dir := traceable(t)
	got := diagnose(t, nil, "recording", "show", dir)
	var exe string
	for line := range strings.Lines(got.stdout) {
		if name, found := strings.CutPrefix(line, "program:"); found {
			exe = strings.TrimSpace(name)
		}
	}
	if out, err := exec.Command("cc", "-g", "-O2", "-pthread", "-o", exe, "../../internal/testdata/trace/names.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got = diagnose(t, nil, "crash", "--recording", dir)
	for _, says := range []string{"is not the recorded file any more", "diagnose crash --core " + filepath.Join(dir, "core")} {
		if got.status != exitInput || !strings.Contains(got.stderr, says) || got.stdout != "" {
			t.Errorf("status %d; stderr %q, want %q in it", got.status, got.stderr, says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "core")); err != nil {
		t.Error(err)
	}
}

// The report says what the time or the command line did not allow, and why.
func TestCrashBounds(t *testing.T) {
	dir := traceable(t)
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--time", "1ns"}, exitOK, "the time was used up (--time 1ns); not done: memory errors, deadlocks, held locks, wakeups, waits, orders of accesses, stray stores, branches of passing runs, what decided earlier"},
		{[]string{"--time", "0s"}, exitUsage, "--time takes a time above zero"},
		{[]string{"--time", "5"}, exitUsage, "--time takes a time, as in 90s or 5m"},
		{[]string{"--hits", "0"}, exitUsage, "--hits takes a whole number from 1 on"},
	} {
		got := diagnose(t, nil, append([]string{"crash", "--recording", dir}, x.args...)...)
		if got.status != x.status || !strings.Contains(got.stdout+got.stderr, x.says) {
			t.Errorf("%q: status %d, want %d and %q in %s%s", x.args, got.status, x.status, x.says, got.stdout, got.stderr)
		}
	}
	for _, flag := range []string{"--time=1m", "--hits=1", "--hops=1", "--experiments=1"} {
		got := diagnose(t, nil, "crash", "--core", filepath.Join(dir, "core"), flag)
		if got.status != exitUsage || !strings.Contains(got.stderr, "is about replays: give a recording by --recording") {
			t.Errorf("%s without a recording: status %d, %s", flag, got.status, got.stderr)
		}
	}
}

// A program that ends with a status failed where it called exit, or in main.
func TestCrashOfAnExit(t *testing.T) {
	const text = `
#include <stdlib.h>
#include <unistd.h>
int total = 3;
__attribute__((noinline)) static void check(int how)
{
	if (total != 4 && how == 1)
		exit(7);
	if (total != 4 && how == 2)
		_exit(8);
}
int main(int argc, char **argv)
{
	if (argc > 1)
		check(atoi(argv[1]));
	return total != 4 ? 9 : 0;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "check.c", Text: text, Flags: []string{"-O1"}})
	for how, want := range map[string]string{"1": "exit with status 7 in check", "2": "exit with status 8 in check", "3": "exit with status 9 in main: main returned it"} {
		cmd := recordCommand(t, "--", exe, how)
		ended(t, cmd)
		dir := filepath.Join(cmd.Dir, "recordings", recordings(t, cmd)[0])
		got := diagnose(t, nil, "crash", "--recording", dir)
		if got.status != exitOK || !strings.HasPrefix(got.stdout, want+"\n") || !strings.Contains(got.stdout, "<- failed here") || !strings.Contains(got.stdout, "total") {
			t.Errorf("%s: status %d, want %q: %s%s", how, got.status, want, got.stdout, got.stderr)
		}
		// The core alone does not tell that.
		if got := diagnose(t, nil, "crash", "--core", filepath.Join(dir, "core")); !strings.HasPrefix(got.stdout, "the process had not failed") {
			t.Errorf("%s: %s", how, got.stdout)
		}
	}
}

// A thread has one number in every report of a failure: in the report of the recording, whose
// moments use it, and in that of the core alone, where the failing thread comes first. A thread
// that ended is counted.
func TestCrashNumbersThreadsAsRecorded(t *testing.T) {
	const text = `
#include <pthread.h>
static pthread_barrier_t both;
static void *brief(void *p) { return p; }
static void *first(void *p) { pthread_barrier_wait(&both); pthread_barrier_wait(&both); return p; }
static void *second(void *p) { pthread_barrier_wait(&both); *(volatile int *)p = 1; return p; }
int main(void)
{
	pthread_t a, b;
	pthread_barrier_init(&both, 0, 2);
	pthread_create(&a, 0, brief, 0);
	pthread_join(a, 0);
	pthread_create(&a, 0, first, 0);
	pthread_create(&b, 0, second, 0);
	pthread_join(a, 0);
	return 0;
}
`
	dir := recordedAt(t, crashtest.Compile(t, crashtest.Program{Source: "numbers.c", Text: text, Flags: []string{"-O0", "-pthread"}}))
	for name, args := range map[string][]string{"recording": {"--recording", dir, "--time", "1ns"}, "core": {"--core", filepath.Join(dir, "core")}} {
		got := diagnose(t, nil, append([]string{"crash"}, args...)...)
		first, _, _ := strings.Cut(got.stdout, "\n")
		if got.status != exitOK || !strings.Contains(first, `thread 4 "second"`) || !strings.Contains(got.stdout, `thread 3 "first"`) || strings.Contains(got.stdout, "of the recording)") {
			t.Errorf("%s: status %d: %s%s", name, got.status, got.stdout, got.stderr)
		}
		// Main sleeps in the recording library; the report shows the call that led there.
		for _, want := range []string{"waits for the end of thread 3\n", " pthread_join() of the recording library\n"} {
			if !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "dg_facts") || strings.Contains(got.stdout, "wrap_thread.c") {
				t.Errorf("%s: %q is missing, or the library's inside is told:\n%s", name, want, got.stdout)
			}
		}
	}
}
