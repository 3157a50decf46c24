package driver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
)

// The case has the text of the line that failed, and no line twice.
func TestSourcesOfACase(t *testing.T) {
	f := crashtest.Named(t, "null_read")
	core := f.Crash(t, f.AllVariants()[0]).Core
	c, err := Crash(context.Background(), Request{Core: core})
	if err != nil {
		t.Fatal(err)
	}
	site := c.Failure.Site
	if site == nil || c.Failure.Source == nil {
		t.Fatalf("no place, or no source: %+v", c.Failure)
	}
	var want string
	for _, l := range c.Failure.Source.Lines {
		if l.Failed {
			want = l.Text
		}
	}
	if got, found := c.SourceLine(site.File, site.Line); !found || got != want || strings.TrimSpace(want) == "" {
		t.Errorf("line %d of %s: %q, %t, want %q", site.Line, site.File, got, found, want)
	}
	for _, s := range c.Sources {
		for i := range s.Lines {
			if i > 0 && s.Lines[i].Number <= s.Lines[i-1].Number {
				t.Errorf("%s: line %d after line %d", s.File, s.Lines[i].Number, s.Lines[i-1].Number)
			}
		}
	}
	if text, found := c.SourceLine(site.File, site.Line+10000); found {
		t.Errorf("a line that is not there has the text %q", text)
	}
}

// Every place of a cause and of a finding is in the list once, and the list is
// bounded.
func TestSourcePlaces(t *testing.T) {
	at := func(line int) *evidence.Site { return &evidence.Site{File: "a.c", Line: line} }
	call := func(line int) *evidence.HeapCall { return &evidence.HeapCall{Site: at(line)} }
	object := func(line int) *evidence.HeapObject {
		return &evidence.HeapObject{Allocated: call(line), Freed: call(line + 1)}
	}
	inlined := evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Inlined, Site: *at(6)}, {Kind: evidence.Inlined, Site: *at(18)}, {Kind: evidence.Physical, Site: *at(19)},
		{Kind: evidence.Physical, Site: *at(99)}}}
	c := &evidence.Case{Failure: evidence.Failure{Site: at(1)},
		Diagnosis: &evidence.Diagnosis{Causes: []evidence.Cause{
			{Site: at(2), Object: object(3), Story: []evidence.CauseStep{{Site: at(5)}, {Access: &evidence.SeenAccess{Site: at(6), Stack: inlined}}, {}}},
			{Interleaving: &evidence.Interleaving{Failing: []evidence.SeenAccess{{Site: at(7)}, {Site: at(2)}}, Passing: []evidence.SeenAccess{{Site: at(8)}, {}}}}}},
		Findings: []evidence.Finding{{Site: at(9), Object: object(10), Beyond: object(12), Call: call(14), Wait: []evidence.WaitEdge{{Site: at(15)}, {Site: &evidence.Site{File: "b.c"}}}}}}
	c.Diagnosis.Schedule = &evidence.Schedule{Preemptions: []evidence.Preemption{{Site: at(16), LastSite: at(17)}, {}}}
	list := sourcePlaces(c)
	slices.SortFunc(list, func(x, y evidence.Site) int { return x.Line - y.Line })
	if len(list) != 19 {
		t.Errorf("%d places, want 19: %v", len(list), list)
	}
	for i, s := range list {
		if s.Line != i+1 {
			t.Errorf("place %d is line %d", i, s.Line)
		}
	}
	for range 2 * maxPlaces {
		c.Findings = append(c.Findings, evidence.Finding{Site: at(100 + len(c.Findings))})
	}
	if list := sourcePlaces(c); len(list) != maxPlaces {
		t.Errorf("%d places of very many, want %d", len(list), maxPlaces)
	}
}

// Causes are judged by lines of source files, and never of other files that debug information may
// name.
func TestSourceLine(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"real.c", "id_rsa"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("one\ntwo\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("id_rsa", filepath.Join(dir, "key.c")); err != nil {
		t.Fatal(err)
	}
	files := sourceFiles{process: &image.Process{}}
	for _, test := range []struct {
		name, want string
		line       int
	}{{"real.c", "two", 2}, {"real.c", "", 4}, {"real.c", "", 0}, {"id_rsa", "", 1}, {"key.c", "", 1}, {"missing.c", "", 1}} {
		got, ok := files.lineText(&evidence.Site{File: filepath.Join(dir, test.name), Line: test.line})
		if got != test.want || ok != (test.want != "") {
			t.Errorf("line %d of %s: %q, %t, want %q", test.line, test.name, got, ok, test.want)
		}
	}
}
