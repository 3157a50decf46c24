package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// A recording whose replay diverges is searched first, and the report has the preemptions that a
// replay needs to fail. The race diverges in few of the runs on a busy machine, so many runs are
// recorded until a search succeeds.
func TestCrashSearches(t *testing.T) {
	source, err := os.ReadFile("../../internal/testdata/schedule/control.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "control.c", Text: string(source), Flags: []string{"-O1", "-pthread"}})
	const mostRuns, mostFailures = 200, 5
	failures := 0
	for run := 0; run < mostRuns && failures < mostFailures; run++ {
		cmd := recordCommand(t, "--", exe)
		ended(t, cmd)
		names := recordings(t, cmd)
		if len(names) == 0 {
			continue
		}
		failures++
		dir := filepath.Join(cmd.Dir, "recordings", names[0])
		got := diagnose(t, nil, "crash", "--recording", dir, "--format", "json")
		if got.status != exitOK {
			t.Fatalf("status %d: %s", got.status, got.stderr)
		}
		if s := scheduleOf(t, got.stdout); s == nil || len(s.Preemptions) == 0 {
			t.Logf("a recording that needs no preemption, or of which none was found: %s", got.stderr)
			continue
		}
		checkSchedule(t, dir, got.stdout)
		return
	}
	if failures == 0 {
		t.Skipf("it did not fail in %d runs", mostRuns)
	}
	t.Errorf("no schedule of %d recordings", failures)
}

func scheduleOf(t *testing.T, text string) *evidence.Schedule {
	t.Helper()
	var document struct{ Case evidence.Case }
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if err := document.Case.Check(); err != nil {
		t.Error(err)
	}
	if document.Case.Diagnosis == nil {
		return nil
	}
	return document.Case.Diagnosis.Schedule
}

func checkSchedule(t *testing.T, dir, text string) {
	t.Helper()
	s := scheduleOf(t, text)
	if s.Failed != 0 || s.Runs == 0 || s.Attempts < 3 || s.By != "search" {
		t.Errorf("%+v", s)
	}
	needed := 0
	for i := range s.Preemptions {
		p := &s.Preemptions[i]
		if p.Needed() {
			needed++
		}
		if p.Site == nil || p.Behind == "" && filepath.Base(p.Site.File) != "control.c" {
			t.Errorf("%+v at %+v", p, p.Site)
		}
	}
	// A preemption that is not needed remains only if there was no time to try without it.
	if needed == 0 {
		t.Errorf("none is needed: %+v", s)
	}
	// The schedule found is reused, and not searched again.
	again := diagnose(t, nil, "crash", "--recording", dir, "--format", "text")
	for _, want := range []string{"The order that makes it fail", "without it 0 of 3 replays failed as recorded", "control.c:"} {
		if !strings.Contains(again.stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, again.stdout, again.stderr)
		}
	}
}
