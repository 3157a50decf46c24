package main

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// mismatched frees memory in ways that are harmless natively, before it fails by
// a null pointer if it is called without an argument.
const mismatched = `
#include <cstdio>
#include <cstdlib>
struct node { int value; node *next; };
static node *first(int argc) { return argc > 1 ? new node{1, nullptr} : nullptr; }
int main(int argc, char **)
{
	for (int i = 0; i < 100; i++) {
		int *counts = new int[4 + i];
		counts[0] = i;
		delete counts;
	}
	char *text = (char *)malloc(10);
	delete text;
	int *one = new int(3);
	free(one);
	return first(argc)->value - 1;
}
`

// A recorded program survives mismatched frees to the failure that is asked for:
// those are findings, and not its cause.
func TestRecordMismatched(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "mismatched.cc", Text: mismatched, Flags: []string{"-O0", "-w"}})
	const warning = "diagnose: warning: 102 mismatched frees were recorded: "
	cmd := recordCommand(t, "--", exe)
	if status, _, stderr := ended(t, cmd); !status.Signaled() || !strings.Contains(stderr, "the program died of SIGSEGV") || strings.Count(stderr, warning) != 1 {
		t.Fatalf("%v, %s", status, stderr)
	}
	r := recordingNamed(t, cmd, recordings(t, cmd)[0])
	if o := &r.Manifest.Outcome; o.Mismatched != 102 || o.Evidence != "" {
		t.Errorf("outcome %+v", o)
	}
	core, err := r.Core()
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.Crash(t.Context(), driver.Request{Core: core})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range c.Findings {
		if f.Kind == evidence.FindingMismatchedFree {
			found++
		}
	}
	if c.Failure.Kind != evidence.NullPointer || found != 3 {
		t.Errorf("%s with %d findings of mismatched frees: %+v", c.Failure.Sentence, found, c.Findings)
	}

	cmd = recordCommand(t, "--", exe, "x")
	if status, _, stderr := ended(t, cmd); status.ExitStatus() != 0 || !strings.Contains(stderr, "the program passed") || !strings.Contains(stderr, warning) {
		t.Errorf("%v, %s", status, stderr)
	}
	cmd = recordCommand(t, "--", exe)
	cmd.Env = append(cmd.Env, "DIAGNOSE_OPTIONS=on_error=abort")
	if status, _, stderr := ended(t, cmd); !status.Signaled() || !strings.Contains(stderr, "the program died of SIGABRT") {
		t.Errorf("%v, %s", status, stderr)
	}
}
