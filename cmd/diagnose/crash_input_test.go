package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// noticed ends as its argument says: with a wrong total, or well.
const noticed = `
#include <stdlib.h>
int total = VERSION;
int main(int argc, char **argv)
{
	total += argc;
	if (total != VERSION + 1)
		abort();
	return 0;
}
`

// recordedAt records a run and returns its directory.
func recordedAt(t *testing.T, args ...string) string {
	t.Helper()
	cmd := recordCommand(t, append([]string{"--all", "--"}, args...)...)
	ended(t, cmd)
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q", names)
	}
	return filepath.Join(cmd.Dir, "recordings", names[0])
}

func buildOf(t *testing.T, dir string) string {
	t.Helper()
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Manifest.Program.BuildID == "" {
		t.Fatalf("%s names no build-id", dir)
	}
	return r.Manifest.Program.BuildID
}

// Recordings of different programs, or of two versions of one program, are not compared. Nor are
// runs that did not end as the flag claims.
func TestCrashRefusesRecordings(t *testing.T) {
	compile := func(version string) string {
		return crashtest.Compile(t, crashtest.Program{Source: "noticed.c", Text: noticed, Flags: []string{"-DVERSION=" + version, "-Wl,--build-id"}})
	}
	one, two := compile("1"), compile("2")
	failed, passed, other := recordedAt(t, one, "x"), recordedAt(t, one), recordedAt(t, two)
	for _, x := range []struct {
		name string
		args []string
		says []string
	}{
		{"another version passed", []string{"--recording", failed, "--passing", other}, []string{buildOf(t, failed), buildOf(t, other), "only recordings of one program"}},
		{"another version failed", []string{"--recording", failed, "--recording", recordedAt(t, two, "x")}, []string{buildOf(t, failed), buildOf(t, other)}},
		{"another program", []string{"--recording", failed, "--passing", recordedAt(t, "true")}, []string{buildOf(t, failed), "bin/true"}},
		{"a passing run that failed", []string{"--recording", failed, "--passing", failed}, []string{"is no recording of a run that passed (SIGABRT"}},
		{"a failing run that passed", []string{"--recording", passed}, []string{"is no recording of a run that failed"}},
		{"a passing run alone", []string{"--passing", passed}, []string{"give that by --recording"}},
		{"not a recording", []string{"--recording", failed, "--passing", t.TempDir()}, []string{"is no recording: it has no manifest.json"}},
	} {
		got := diagnose(t, nil, append([]string{"crash"}, x.args...)...)
		if got.status != exitInput && got.status != exitUsage || got.stdout != "" {
			t.Errorf("%s: status %d\n%s", x.name, got.status, got.stdout)
		}
		for _, says := range x.says {
			if !strings.Contains(got.stderr, says) {
				t.Errorf("%s: %q is missing in %s", x.name, says, got.stderr)
			}
		}
	}
	// The pair that belongs together is taken.
	if got := diagnose(t, nil, "crash", "--recording", failed, "--passing", passed); got.status != exitOK || !strings.Contains(got.stdout, "failing recordings 1, passing 1") {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
}

// Without a passing run a race is found by a result that no serial order gives.
func TestCrashWithoutPassingRuns(t *testing.T) {
	crashtest.TracesAccesses(t)
	text, err := os.ReadFile("../../internal/testdata/cause/exit_turnstile.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "turnstile.c", Text: string(text), Flags: []string{"-O0", "-pthread"}})
	const attempts = 15 // a busy machine may exceed the delays that bring about the order
	var dir string
	for i := 0; i < attempts && !strings.HasSuffix(dir, "-exit-1"); i++ {
		dir = recordedAt(t, exe, "5", "25")
	}
	got := diagnose(t, nil, "crash", "--recording", dir)
	for _, want := range []string{"RWW of hall.inside", "there is no passing one to compare with", "failing recordings 1, passing 0", "no serial execution has"} {
		if got.status != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("status %d, %q is missing in\n%s%s", got.status, want, got.stdout, got.stderr)
		}
	}
}

// reused uses one slot of the heap for many objects before the one that is overrun. Stores to the
// earlier objects of the slot are not to blame.
const reused = `
#include <stdlib.h>
#include <string.h>
char *volatile item;
static void served(int i)
{
	item = malloc(40);
	memset(item, i, 40);
	free(item);
}
static void overrun(void)
{
	item = malloc(40);
	for (volatile int i = 0; i < 44; i++)
		item[i] = 'x'; // here
	free(item);
}
int main(void)
{
	for (int i = 1; i < 2000; i++)
		served(i);
	overrun();
	return 0;
}
`

func TestCrashOfReusedMemory(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "reused.c", Text: reused, Flags: []string{"-O0"}})
	cmd := recordCommand(t, "--", exe)
	cmd.Env = append(cmd.Env, "DIAGNOSE_OPTIONS=quarantine_mb=0")
	ended(t, cmd)
	dir := filepath.Join(cmd.Dir, "recordings", "reused-0001-SIGABRT")
	got := diagnose(t, nil, "trace", "--recording", dir, "--watch", "malloc@reused.c:13#1+0:8")
	if !strings.Contains(got.stdout, "served reused.c:7 by heap") && !strings.Contains(got.stdout, "served reused.c:9 by heap") {
		t.Fatalf("the memory was no other object's before; the test shows nothing:\n%s%s", got.stdout, got.stderr)
	}
	got = diagnose(t, nil, "crash", "--recording", dir)
	_, cause, _ := strings.Cut(got.stdout, "\nCause\n\n")
	if first, _, _ := strings.Cut(cause, "\n"); got.status != exitOK || !strings.HasPrefix(first, "overrun (reused.c:15) writes to") || !strings.HasSuffix(first, "[proved]") {
		t.Errorf("status %d: %s\n%s", got.status, got.stderr, cause)
	}
}
