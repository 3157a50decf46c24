package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// traceable records testdata/trace/names.c, which ends with SIGABRT.
func traceable(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "names")
	if out, err := exec.Command(cc, "-g", "-O1", "-pthread", "-o", exe, "../../internal/testdata/trace/names.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := recordCommand(t, "--output", "recordings", "--", exe)
	cmd.Run() // it aborts
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q, want one", names)
	}
	return filepath.Join(cmd.Dir, "recordings", names[0])
}

func TestTraceTable(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	got := diagnose(t, nil, "trace", "--recording", dir, "--watch", "cfg.workers[1].state", "-w", "guarded")
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	for _, want := range []string{"Thread", "cfg.workers[1].state  0 -> 1", "cfg.workers[1].state  1 -> 2", "-5", "main names.c:67", "add names.c:34", " lock\n", "cfg.workers[1].state: 2 accesses, pass 1", "0 lost"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, got.stdout)
		}
	}
	got = diagnose(t, nil, "trace", "--recording", dir, "--watch", "guarded", "--backend", "probe")
	if got.status != 0 || strings.Count(got.stdout, "names.c:34") < 10 || !strings.Contains(got.stdout, "pass by probe") || !strings.Contains(got.stdout, "known instructions") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	got = diagnose(t, nil, "trace", "--recording", dir, "--watch", "guarded", "--limit", "2", "--writes", "--backend", "ptrace")
	if got.status != 0 || !strings.Contains(got.stdout, "the last 2 of 10 accesses") || strings.Count(got.stdout, "names.c:34") != 2 || !strings.Contains(got.stdout, "by ptrace") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestTraceForPrograms(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	got := diagnose(t, nil, "trace", "--recording", dir, "--watch", "guarded", "--format", "json")
	var trace shownTrace
	if err := json.Unmarshal([]byte(got.stdout), &trace); err != nil || got.status != 0 {
		t.Fatalf("status %d, %v\n%s%s", got.status, err, got.stdout, got.stderr)
	}
	last := trace.Accesses[len(trace.Accesses)-1]
	if !trace.Failed || len(trace.Threads) != 2 || len(trace.Accesses) < 10 || trace.Coverage.Hits != uint64(len(trace.Accesses)) ||
		last.Function != "add" || last.Thread != 1 || last.New != 0xfffffffffffffffb || len(last.Locks) != 1 {
		t.Errorf("%s", got.stdout)
	}
	out := filepath.Join(t.TempDir(), "trace.json")
	got = diagnose(t, nil, "trace", "--recording", dir, "--watch", "guarded", "--format", "chrome", "--output", out)
	if got.status != 0 || got.stdout != "" {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	checkChrome(t, text, len(trace.Accesses))
}

// checkChrome checks what the viewers need: a list of events, each with a known phase and an
// increasing time, and lanes with names.
func checkChrome(t *testing.T, text []byte, accesses int) {
	t.Helper()
	var file struct {
		Events []chromeEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	instants, lanes, before := 0, map[uint32]bool{}, -1.0
	durations, holds := map[string]int{}, map[string]float64{}
	for _, e := range file.Events {
		switch e.Phase {
		case "X":
			durations[e.Category]++
			if e.Duration < 1 || !lanes[e.TID] {
				t.Errorf("%+v", e)
			}
		case "b":
			holds[e.ID] = e.Time
		case "e":
			if from, begun := holds[e.ID]; !begun || e.Time < from {
				t.Errorf("a lock's hold ends at %v, and begins at %v: %+v", e.Time, from, e)
			}
		case "M":
			lanes[e.TID] = lanes[e.TID] || e.Name == "thread_name"
		case "C":
		case "i":
			instants++
			if e.Time <= before || !lanes[e.TID] || e.Scope != "t" || e.Args["where"] == nil {
				t.Errorf("%+v", e)
			}
			before = e.Time
		default:
			t.Errorf("phase %q", e.Phase)
		}
	}
	if instants != accesses {
		t.Errorf("%d instants, want %d", instants, accesses)
	}
	if durations["lock"] == 0 || durations["call"] == 0 || len(holds) == 0 {
		t.Errorf("durations %v, %d holds of locks", durations, len(holds))
	}
	checkNested(t, file.Events)
}

// checkNested checks that the durations of a thread are nested or disjoint: viewers draw no others.
func checkNested(t *testing.T, events []chromeEvent) {
	t.Helper()
	for i := range events {
		for k := range events[:i] {
			a, b := &events[i], &events[k]
			if a.Phase != "X" || b.Phase != "X" || a.TID != b.TID {
				continue
			}
			if a.Time > b.Time {
				a, b = b, a
			}
			if end := a.Time + a.Duration; b.Time < end && b.Time+b.Duration > end {
				t.Errorf("durations overlap: %+v, %+v", a, b)
			}
		}
	}
}

// A thread's wait for a lock, a call that blocks and a signal's handler are shown as durations.
func TestChromeDurations(t *testing.T) {
	const text = `#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int total, come[2], go[2];
static void on_signal(int s) { char c = (char)s; total += write(go[1], &c, 1); }
static void *adder(void *arg)
{
	char c = 1;
	if (write(come[1], &c, 1) != 1) abort();
	pthread_mutex_lock(&guard);
	total += 7;
	pthread_mutex_unlock(&guard);
	return arg;
}
int main(void)
{
	char c;
	pthread_t t;
	signal(SIGUSR1, on_signal);
	if (pipe(come) || pipe(go)) return 1;
	pthread_mutex_lock(&guard);
	pthread_create(&t, NULL, adder, NULL);
	if (read(come[0], &c, 1) != 1) return 1;
	usleep(50000); /* the thread waits for the lock now */
	total = 5;
	raise(SIGUSR1);
	pthread_mutex_unlock(&guard);
	pthread_join(t, NULL);
	abort();
}
`
	program := crashtest.Compile(t, crashtest.Program{Source: "waits.c", Text: text, Flags: []string{"-O0", "-pthread"}})
	const tries = 10 // the thread may be late for the lock
	for n := range tries {
		longest, waited := chromeDurations(t, program)
		if longest["handles SIGUSR1"] < 2 || longest["join"] < 1 || longest["read"] < 1 || longest["mutex guard"] < 1 {
			t.Fatalf("durations %v", longest)
		}
		if waited["mutex guard"] && longest["mutex guard"] >= 2 {
			return
		}
		t.Logf("try %d: the thread did not wait for the lock", n+1)
	}
	t.Errorf("no wait for the lock in %d tries", tries)
}

// chromeDurations records a program that aborts, and returns the longest duration of
// each name in the trace of its variable total, and which were waits.
func chromeDurations(t *testing.T, program string) (longest map[string]float64, waited map[string]bool) {
	t.Helper()
	cmd := recordCommand(t, "--", program)
	ended(t, cmd)
	got := diagnose(t, nil, "trace", "--recording", filepath.Join(cmd.Dir, "recordings", "waits-0001-SIGABRT"), "--watch", "total", "--format", "chrome")
	if got.status != exitOK {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	var file struct {
		Events []chromeEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &file); err != nil {
		t.Fatal(err)
	}
	checkNested(t, file.Events)
	longest, waited = map[string]float64{}, map[string]bool{}
	for _, e := range file.Events {
		longest[e.Name] = max(longest[e.Name], e.Duration)
		if e.Args["waited"] == true {
			waited[e.Name] = true
		}
	}
	return longest, waited
}

// Expressions that name no memory, and code that runs after main has returned.
func TestTraceOutside(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	got := diagnose(t, nil, "trace", "--recording", dir, "--watch", "0x10:8")
	if got.status != exitOK || !strings.HasPrefix(got.stdout, "\n0x10:8: 0 accesses") || !strings.Contains(got.stdout, "limit: 0x10:8: nothing is mapped at 0x10 at the end") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	const text = `#include <stdlib.h>
int main(void) { char *p = malloc(40); *p = 1; free(p); return 3; }
`
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "freed.c", Text: text, Flags: []string{"-O0"}}))
	ended(t, cmd)
	got = diagnose(t, nil, "trace", "--recording", filepath.Join(cmd.Dir, "recordings", "freed-0001-exit-3"), "--watch", "malloc@freed.c:2")
	if got.status != exitOK || !strings.Contains(got.stdout, "outside of main by heap") || strings.Contains(got.stdout, "_start") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestTraceRefuses(t *testing.T) {
	dir := traceable(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--watch", "guarded"}, exitUsage, "needs --recording"},
		{[]string{"--recording", dir}, exitUsage, "give a variable"},
		{[]string{"--recording", dir, "guarded"}, exitUsage, "each expression takes a --watch"},
		{[]string{"--recording", dir, "--watch", "gaurded"}, exitUsage, "there is guarded"},
		{[]string{"--recording", dir, "--watch", ""}, exitUsage, "--watch: an expression is missing"},
		{[]string{"--recording", dir, "--watch", "0x5555555580a0"}, exitUsage, "an address takes a length, as in 0x5555555580a0:8"},
		{[]string{"--recording", dir, "--watch", "guarded", "--format", "xml"}, exitUsage, "table, json or chrome"},
		{[]string{"--recording", dir, "--watch", "guarded", "--backend", "magic"}, exitUsage, "--backend takes"},
		{[]string{"--recording", dir, "--watch", "guarded", "--passes", "0"}, exitUsage, "from 1 on"},
		{[]string{"--recording", "/nowhere", "--watch", "guarded"}, exitInput, "/nowhere"},
	} {
		got := diagnose(t, nil, append([]string{"trace"}, c.args...)...)
		if got.status != c.status || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%q: status %d, want %d, and %q in %q", c.args, got.status, c.status, c.says, got.stderr)
		}
	}
}

// If a program has no debug information, the command says so when a variable is not found.
func TestTraceWithoutDebugInformation(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := recordedAt(t, crashtest.Compile(t, crashtest.Program{Source: "plain.c", Flags: []string{"-O1", "-s", "-g0"},
		Text: "static int total; int main(int n, char **v) { total += n; return *(volatile int *)(long)(n - 1) + total; }\n"}))
	got := diagnose(t, nil, "trace", "--recording", dir, "--watch", "total")
	for _, want := range []string{"--watch total: there is no global total; ", " has no debug information", "compile it with -g", "ADDRESS:LENGTH"} {
		if got.status != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("status %d, %q is missing in %s", got.status, want, got.stderr)
		}
	}
}
