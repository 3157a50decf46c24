package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

const counting = `
#include <signal.h>
#include <string.h>
#include <unistd.h>
static int rounds;
__attribute__((noinline)) static void count_on(int line) { rounds++; write(1, &line, 0); }
int main(int argc, char **argv)
{
	for (int i = 0; i < 20000; i++)
		count_on(i);
	if (argc > 1)
		kill(getpid(), SIGKILL);
	return *(volatile int *)(long)(argc - 1);
}
`

// If the recording does not contain the end of the run, crash tells where the recording ends.
func TestCrashOfACutRecording(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "counting.c", Text: counting, Flags: []string{"-O1"}})
	killed := recordedAt(t, exe, "by itself")
	cut := recordedAt(t, exe)
	if err := os.Remove(filepath.Join(cut, "core")); err != nil {
		t.Fatal(err)
	}
	// The log is cut as a full disk cuts it.
	rec, err := record.Open(cut)
	if err != nil {
		t.Fatal(err)
	}
	rec.Close()
	rec.Manifest.Outcome = record.Outcome{Kind: record.OutcomeCut, Text: "not all was recorded; the process died of SIGSEGV"}
	if err := rec.Manifest.Write(cut); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(cut, "log")
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(log, info.Size()/2&^0xfff); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		dir  string
		says []string
	}{
		{killed, []string{"the process died of SIGKILL and left no core; what follows is the process where its recording ends\n", " main(", "diagnose replay " + killed + " --gdb  # "}},
		{cut, []string{"not all was recorded; the process died of SIGSEGV; what follows is the process where its recording ends\n", "because  log is cut off at 0x", " count_on(", "diagnose record --output DIRECTORY -- " + exe + "  # "}},
	} {
		got := diagnose(t, nil, "crash", "--recording", x.dir)
		for _, want := range append(x.says, "unknown: the recording does not have the failure\n", "counting.c:") {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%q is missing in\n%s%s", want, got.stdout, got.stderr)
			}
		}
		if got.status != exitOK || strings.Contains(got.stdout, "failed here") || strings.Contains(got.stdout, "Registers of the failing thread") {
			t.Errorf("status %d, or a failure is told that is not known:\n%s%s", got.status, got.stdout, got.stderr)
		}
		if text := diagnose(t, nil, "crash", "--recording", x.dir, "--format", "json"); text.status != exitOK || !strings.Contains(text.stdout, `"why": "the recording does not have the failure"`) {
			t.Errorf("status %d: %s%s", text.status, text.stdout, text.stderr)
		}
	}
}

// Nothing at all was recorded.
func TestCrashOfAnEmptyRecording(t *testing.T) {
	dir := recordedAt(t, crashtest.Compile(t, crashtest.Program{Source: "counting.c", Text: counting, Flags: []string{"-O1"}}))
	if err := os.Remove(filepath.Join(dir, "core")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "log"), 0); err != nil {
		t.Fatal(err)
	}
	got := diagnose(t, nil, "crash", "--recording", dir)
	if got.status != exitInput || !strings.Contains(got.stderr, "it has no core and no events, so what failed is not known; its run: SIGSEGV") {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
}

const faulting = `
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static sigjmp_buf back;
int *volatile slot;
static void leave(int signal) { siglongjmp(back, signal); }
__attribute__((noinline)) static int *lookup(int n) { return n > 5 ? NULL : calloc(1, 4); }
__attribute__((noinline)) static void store(int n) { *slot = n; }
int main(int argc, char **argv)
{
	if (argc > 1)
		signal(SIGSEGV, leave);
	write(1, "", 0);
	if (sigsetjmp(back, 1))
		abort();
	for (int i = argc; i < argc + 6; i++) {
		slot = lookup(i);
		store(i);
	}
	return 0;
}
`

// cutBefore removes the core from a recording and cuts its log at the first event of a kind. The
// end of the run is then unknown except for the outcome. It returns the process's number.
func cutBefore(t *testing.T, dir string, kind eventlog.Kind, outcome *record.Outcome) int {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := os.Remove(filepath.Join(dir, "core")); err != nil {
		t.Fatal(err)
	}
	if outcome != nil {
		rec.Manifest.Outcome = *outcome
	}
	if err := rec.Manifest.Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	err = eventlog.WriteLog(log, uint32(rec.Manifest.PID), func(yield func(*eventlog.Event, error) bool) {
		for e, err := range rec.Log.Ordered() {
			if err == nil && e.Kind == kind || !yield(e, err) {
				return
			}
		}
	})
	if err == nil {
		err = os.Rename(log.Name(), filepath.Join(dir, "log"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec.Manifest.PID
}

// A recording ends before the failure, and its replay reaches the failure all the same. It is
// diagnosed like any other, with experiments.
func TestCrashBehindTheLastEvent(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "faulting.c", Text: faulting, Flags: []string{"-O1"}})
	for _, x := range []struct {
		name    string
		outcome *record.Outcome
		limit   string
		replay  string
	}{
		{"full disk", &record.Outcome{Kind: record.OutcomeCut, Text: "not all was recorded; the process died of SIGSEGV"},
			"how the recorded process ended is not in its recording (unknown, the recording ended before the program; not all was recorded; the process died of SIGSEGV); the failure is what a replay reaches after the last event",
			"reached SIGSEGV after the last event; the recording was cut off there"},
		{"killed recorder", &record.Outcome{Kind: record.OutcomeRunning},
			"the failure is what a replay reaches after the last event", "reached SIGSEGV after the last event"},
		{"core removed", nil, "the recording has no core; what one tells was read from a replay", "reached the recorded failure, SIGSEGV"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := recordedAt(t, exe)
			pid := cutBefore(t, dir, eventlog.KindSignal, x.outcome)
			got := diagnose(t, nil, "crash", "--recording", dir)
			for _, want := range []string{"null pointer write of *slot in store: slot is null\n", "SIGSEGV (SEGV_MAPERR)", "lookup (faulting.c:9) returned 0", "[proved]",
				"0 of 3 replays failed as recorded", fmt.Sprintf("(process %d, 1 thread)", pid), x.limit} {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("%q is missing in\n%s%s", want, got.stdout, got.stderr)
				}
			}
			if got.status != exitOK {
				t.Errorf("status %d", got.status)
			}
			if got := diagnose(t, nil, "replay", dir); got.status != exitOK || !strings.Contains(got.stdout, x.replay) {
				t.Errorf("replay: status %d, %q is missing in\n%s%s", got.status, x.replay, got.stdout, got.stderr)
			}
		})
	}
}

// After the last event an instruction faults, and the program handles the signal. What the handler
// does is not known.
func TestCrashBeforeAHandlerThatIsCutOff(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "faulting.c", Text: faulting, Flags: []string{"-O1"}})
	dir := recordedAt(t, exe, "handled")
	cutBefore(t, dir, eventlog.KindSignal, &record.Outcome{Kind: record.OutcomeRunning})
	got := diagnose(t, nil, "crash", "--recording", dir)
	for _, want := range []string{"how the process ended is not known; what follows is the process where its recording ends\n", "unknown: the recording does not have the failure\n", " store("} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, got.stdout, got.stderr)
		}
	}
	if got.status != exitOK || strings.Contains(got.stdout, "null pointer") {
		t.Errorf("status %d, or a failure is told that is not known:\n%s", got.status, got.stdout)
	}
}
