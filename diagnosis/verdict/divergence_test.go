package verdict_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// divergeProgram is a program of internal/testdata/diverge. Its comments say with which arguments it FAILS, although it should not, and
// with which it PASSES; and which ones the program without its bug, compiled with -DFIXED, REFUSED.
type divergeProgram struct {
	name, ends     string
	fails, refused []string
	passes         [][]string
	line           int // that of the branch at which the failing run leaves the way of the others
}

func readDiverge(t *testing.T, path string) divergeProgram {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	says := func(name string) string {
		_, rest, found := strings.Cut(text, "// "+name+": ")
		if !found {
			t.Fatalf("%s does not say %s", path, name)
		}
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	before, _, found := strings.Cut(text, "// DIVERGES")
	if !found {
		t.Fatalf("%s has no line with DIVERGES", path)
	}
	p := divergeProgram{name: strings.TrimSuffix(filepath.Base(path), ".c"), ends: says("ENDS"), fails: strings.Fields(says("FAILS")), refused: strings.Fields(says("REFUSED")),
		line: strings.Count(before, "\n") + 1}
	for list := range strings.SplitSeq(says("PASSES"), " | ") {
		p.passes = append(p.passes, strings.Fields(list))
	}
	return p
}

// TestDivergences: recordings of runs that passed on other input tell where a run that gave up went another way. That is no cause: a program
// without a bug that refuses its input goes another way as well.
func TestDivergences(t *testing.T) {
	crashtest.TracesAccesses(t)
	paths, err := filepath.Glob("../../internal/testdata/diverge/*.c")
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d programs, %v", len(paths), err)
	}
	for _, path := range paths {
		for _, level := range []string{"-O0", "-O2"} {
			p := readDiverge(t, path)
			t.Run(p.name+level, func(t *testing.T) {
				build := func(flags ...string) string {
					return (&recordtest.Program{Source: path, Name: p.name, Flags: append(flags, level)}).Build(t)
				}
				bug, fixed := build(), build("-DFIXED")
				recordtest.RecordProgram(t, fixed, p.fails, "", "exit 0")
				d := p.diagnose(t, bug, p.fails)
				if !slices.ContainsFunc(d.Divergences, func(x evidence.Divergence) bool { return p.at(&x) }) {
					t.Errorf("line %d is not told: %+v", p.line, d.Divergences)
				}
				if p.diagnose(t, fixed, p.refused); t.Failed() {
					t.Logf("%+v", d.Leads)
				}
			})
		}
	}
}

// at reports whether a branch is the one that is looked for, or compared what was made there.
func (p *divergeProgram) at(d *evidence.Divergence) bool {
	return d.Site.Line == p.line || slices.ContainsFunc(d.Origin, func(s evidence.CauseStep) bool { return s.Site.Line == p.line })
}

// diagnose compares a failing run with the passing ones. Nothing may be called a cause, and the first lead is where they part.
func (p *divergeProgram) diagnose(t *testing.T, exe string, args []string) *evidence.Diagnosis {
	t.Helper()
	request := driver.Request{Recordings: []string{recordtest.RecordProgram(t, exe, args, "", p.ends).Dir}, Replays: 1}
	for _, passes := range p.passes {
		request.Passing = append(request.Passing, recordtest.RecordProgram(t, exe, passes, "", "exit 0").Dir)
	}
	result, err := driver.Crash(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	d := result.Diagnosis
	if len(d.Causes) > 0 {
		t.Errorf("%q is called a cause (%s)", d.Causes[0].Summary, d.Causes[0].Proof)
	}
	if len(d.Leads) == 0 || d.Leads[0].Open != evidence.OpenOtherWay || len(d.Divergences) == 0 {
		t.Fatalf("no branch is told first: %+v; %v", d.Leads, result.Limits)
	}
	for _, x := range d.Divergences {
		if x.PassingOf != len(p.passes) || x.Reached <= x.PassingRuns || x.Reached > x.PassingOf || x.Score <= 0.5 {
			t.Errorf("%+v", x)
		}
	}
	return d
}
