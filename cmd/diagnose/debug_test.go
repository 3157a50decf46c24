package main

import (
	"errors"
	"strings"
	"testing"

	"diagnose/debug/debugtest"
)

// A recording opens in gdb, whose commands of ours work, and is unchanged afterwards.
func TestDebug(t *testing.T) {
	if _, err := debugtest.FindGDB(); errors.Is(err, debugtest.ErrNoGDB) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	debugtest.NeedsWatches(t)
	dir := traceable(t)
	got := diagnose(t, nil, "debug", dir, "--", "-batch", "-ex", "break add", "-ex", "reverse-continue", "-ex", "who-wrote guarded", "-ex", "goto end",
		"-ex", "monitor when", "-ex", "goto begin", "-ex", "leave", "-ex", "stepi", "-ex", "monitor when", "-ex", "reverse-stepi", "-ex", "discard",
		"-ex", "goto nowhere")
	if got.status != exitOK {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	text := got.stdout + got.stderr
	for _, want := range []string{"Breakpoint 1, ", "last stored to by thread", "no longer follows the recording", "has left the recording at 1:",
		"cannot go backwards", "is given up: the program is again as recorded", "no moment"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if got := diagnose(t, nil, "replay", dir, "--verify"); got.status != exitOK {
		t.Errorf("the replay is not identical:\n%s", got.stdout)
	}
}

func TestDebugMistakes(t *testing.T) {
	dir := traceable(t)
	for _, args := range [][]string{{}, {dir, dir}, {"--server", "--stdio", dir}, {"--dap", dir, "--", "-batch"}, {"--at", "nowhere", dir}, {"--", "-batch"}} {
		if got := diagnose(t, nil, append([]string{"debug"}, args...)...); got.status != exitUsage {
			t.Errorf("debug %q: status %d, %s", args, got.status, got.stderr)
		}
	}
	if got := diagnose(t, nil, "debug", t.TempDir()); got.status != exitInput {
		t.Errorf("no recording: status %d, %s", got.status, got.stderr)
	}
	if got := diagnose(t, nil, "debug", "--gdb", "/nowhere/gdb", dir); got.status != exitInternal || !strings.Contains(got.stderr, "/nowhere/gdb") {
		t.Errorf("no gdb: status %d, %s", got.status, got.stderr)
	}
}
