package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/record"
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

// Of a run whose end the recording does not have, crash tells where the recording
// ends.
func TestCrashOfACutRecording(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "counting.c", Text: counting, Flags: []string{"-O1"}})
	killed := recordedAt(t, exe, "by itself")
	cut := recordedAt(t, exe)
	if err := os.Remove(filepath.Join(cut, "core")); err != nil {
		t.Fatal(err)
	}
	// As a full disk leaves it.
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
