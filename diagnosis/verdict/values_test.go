package verdict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// TestValues: what the first cause says of bad values that are easily misjudged.
func TestValues(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, test := range []struct {
		name, variable string
		kind           evidence.CauseKind
		proof          evidence.Proof
		summary        string
		hops           int // at most; 0: any
	}{
		{name: "printed_pointer", variable: "p->label", kind: evidence.CauseOverwritten, proof: evidence.Proved, summary: "directly past the end of p->ids"},
		{name: "printed_number", kind: evidence.CauseBadValue, proof: evidence.Replayed},
		{name: "read_behind", kind: evidence.CauseHeapOverflow, proof: evidence.Replayed, summary: "8 bytes past the end of an object of 128 bytes allocated in main"},
		{name: "read_outside", variable: "i", kind: evidence.CauseBadValue, proof: evidence.Replayed, summary: "reads cells[4], and cells has 4 elements"},
		{name: "unchecked_result", kind: evidence.CauseBadValue, summary: "returned NULL; add (unchecked_result.c:25) uses it unchecked"},
		{name: "dead_frame", variable: "current->counter", kind: evidence.CauseBadValue, proof: evidence.Replayed, summary: "enter (dead_frame.c:17) hands out the address of c, and main (dead_frame.c:33) reads there"},
		{name: "middle_link", proof: evidence.Proved, kind: evidence.CauseOverwritten, summary: "put (middle_link.c:17)"},
		{name: "long_run", variable: "numbers[63]", kind: evidence.CauseBadValue, proof: evidence.Proved, summary: "prepare (long_run.c:13)"},
		{name: "handled_loop", kind: evidence.CauseBadValue, proof: evidence.Replayed, summary: "the loop at shift (handled_loop.c:16)"},
		{name: "into_freed", kind: evidence.CauseHeapOverflow, proof: evidence.Proved, summary: "past the end of an object of 84 bytes"},
		{name: "counted_index", kind: evidence.CauseOverwritten, hops: verdict.DefaultHops - 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := recordtest.Read("../../internal/testdata/values/" + test.name + ".c")
			if err != nil {
				t.Fatal(err)
			}
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{p.Record(t).Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			d := result.Diagnosis
			if d == nil || len(d.Causes) == 0 {
				t.Fatal("no cause is named")
			}
			if err := result.Check(); err != nil {
				t.Error(err)
			}
			c := &d.Causes[0]
			if c.Kind != test.kind || test.proof != "" && c.Proof != test.proof || test.variable != "" && c.Variable != test.variable || !strings.Contains(c.Summary, test.summary) {
				t.Errorf("%s of %s, %s: %s", c.Kind, c.Variable, c.Proof, c.Summary)
			}
			if line := wantedLine(t, p.Source); line > 0 && (c.Site == nil || c.Site.Line != line || filepath.Base(c.Site.File) != filepath.Base(p.Source)) {
				t.Errorf("it is at %+v, and not in line %d", c.Site, line)
			}
			if outside := test.name == "read_outside"; outside != (c.Outside != nil && c.Outside.Variable == "cells") {
				t.Errorf("the access outside is %+v", c.Outside)
			}
			if test.hops > 0 {
				checkHops(t, c, test.hops)
			}
		})
	}
}

// checkHops: the way back came to its end, with a loop as one step.
func checkHops(t *testing.T, c *evidence.Cause, most int) {
	t.Helper()
	folded := false
	for _, s := range c.Story {
		folded = folded || strings.Contains(s.Text, "the same instruction had made it of 0, in 13 steps")
		if strings.Contains(s.Text, "--hops") {
			t.Errorf("the way was too long: %s", s.Text)
		}
	}
	if !folded || len(c.Story) > most {
		t.Errorf("a story of %d steps: %+v", len(c.Story), c.Story)
	}
}

// wantedLine is the line of a source that says so; 0 if none does.
func wantedLine(t *testing.T, source string) int {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "// WANT")
	if !found {
		return 0
	}
	return 1 + strings.Count(before, "\n")
}
