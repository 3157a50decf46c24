package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// lockOrder fails with one preemption at the right instruction.
func lockOrder(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/testdata/hunt/lock_order.c")
	if err != nil {
		t.Fatal(err)
	}
	return crashtest.Compile(t, crashtest.Program{Source: "lock_order.c", Text: string(text), Flags: []string{"-O1", "-pthread"}})
}

func TestHunt(t *testing.T) {
	exe, output := lockOrder(t), filepath.Join(t.TempDir(), "recordings")
	o := diagnose(t, nil, "hunt", "--seeds", "200", "--output", output, "--", exe)
	if o.status == exitInput {
		t.Skip(o.stderr)
	}
	if o.status != exitFailingSchedule {
		t.Fatalf("status %d: %s%s", o.status, o.stdout, o.stderr)
	}
	for _, want := range []string{"wait for each other's mutexes", "1 preemption;", "is preempted at its step", "lock_order-0001-deadlock",
		"lock_order-0002-passed", "diagnose crash --recording", "--first-seed"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%q is missing:\n%s", want, o.stdout)
		}
	}
	if o := diagnose(t, nil, "replay", "--verify", filepath.Join(output, "lock_order-0001-deadlock")); o.status != exitOK {
		t.Errorf("replay: status %d: %s%s", o.status, o.stdout, o.stderr)
	}
	o = diagnose(t, nil, "minimize", "--format", "json", "--output", output, filepath.Join(output, "lock_order-0001-deadlock"))
	var report struct {
		Found   bool
		Minimal struct {
			Preemptions int
			Failing     string `json:"failing_recording"`
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || o.status != exitOK {
		t.Fatalf("minimize: status %d, %v: %s%s", o.status, err, o.stdout, o.stderr)
	}
	if !report.Found || report.Minimal.Preemptions != 1 || report.Minimal.Failing == "" {
		t.Errorf("minimize: %s", o.stdout)
	}
	o = diagnose(t, nil, "minimize", filepath.Join(output, "lock_order-0009"))
	if o.status != exitInput {
		t.Errorf("minimize without a recording: status %d", o.status)
	}
}

// A hunt that finds nothing says so, and how to continue.
func TestHuntInVain(t *testing.T) {
	exe, output := lockOrder(t), filepath.Join(t.TempDir(), "recordings")
	for i, want := range []string{`"next": 2`, `"next": 3`} {
		o := diagnose(t, nil, "hunt", "--resume", "--strategy", "delay", "--depth", "1", "--length", "1", "--seeds", "1", "--format", "json", "--output", output, "--", exe)
		if o.status == exitInput {
			t.Skip(o.stderr)
		}
		if o.status != exitOK || !strings.Contains(o.stdout, want) {
			t.Fatalf("%d: status %d, want %s: %s%s", i, o.status, want, o.stdout, o.stderr)
		}
	}
}

func TestHuntUsage(t *testing.T) {
	for _, args := range [][]string{{"hunt"}, {"hunt", "--strategy", "luck", "--", "true"}, {"hunt", "--fail-if", "(", "--", "true"},
		{"hunt", "--budget", "0", "--", "true"}, {"hunt", "--depth", "0", "--", "true"}, {"minimize"}, {"minimize", "--timeout", "-1s", "x"}} {
		if o := diagnose(t, nil, args...); o.status != exitUsage && !(args[0] == "minimize" && o.status == exitInput) {
			t.Errorf("%v: status %d: %s", args, o.status, o.stderr)
		}
	}
}
