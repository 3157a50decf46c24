package verdict_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/causetest"
	"diagnose/reports"
)

func TestMain(m *testing.M) { causetest.Main(m) }

// tableVariable names a file to write the table of the corpus to.
const tableVariable = "DIAGNOSE_CAUSES"

// row is a case and what came of it.
type row struct {
	c       *causetest.Case
	took    time.Duration
	cause   *evidence.Cause
	verdict string // what is wrong; empty: nothing
	passes  int
	hits    uint64
}

// TestCorpus gives the recordings of each program to the whole tool: the cause
// that it names first must be the one that stands beside the bug, and proved by
// replays that fail and replays that do not.
func TestCorpus(t *testing.T) {
	cases := causetest.Cases(t, "../../internal/testdata/cause")
	path := os.Getenv(tableVariable)
	var mu sync.Mutex
	var rows []row
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			if c.Search != "" {
				t.Skip(c.Search)
			}
			r := diagnose(t, c)
			mu.Lock()
			rows = append(rows, r)
			mu.Unlock()
			if r.verdict != "" {
				t.Error(r.verdict)
			}
		})
	}
	if path == "" {
		return
	}
	if err := os.WriteFile(path, []byte(table(rows)), 0o644); err != nil {
		t.Fatal(err)
	}
}

const passingRuns = 2

func diagnose(t *testing.T, c *causetest.Case) row {
	t.Helper()
	req := driver.Request{Recordings: []string{c.Failing(t).Dir}}
	if !causetest.FullMatrix() {
		req.Replays = 1
	}
	for _, p := range c.Passing(t, passingRuns) {
		req.Passing = append(req.Passing, p.Dir)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	started := time.Now()
	result, err := driver.Crash(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	r := row{c: c, took: time.Since(started)}
	d := result.Diagnosis
	if d == nil {
		t.Fatalf("there is no diagnosis; limits: %v", result.Limits)
	}
	r.passes, r.hits = d.Coverage.Passes, d.Coverage.Hits
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	if len(d.Causes) > 0 {
		r.cause = &d.Causes[0]
		for _, e := range r.cause.Experiments {
			t.Logf("%s: %d of %d failed (%s) %s", e.What, e.Failed, e.Runs, e.Outcome, e.Undecided)
		}
	}
	if r.verdict = judge(c, r.cause); r.verdict != "" {
		var report strings.Builder
		if err := reports.Write(&report, result, reports.Options{Format: reports.Text}); err != nil {
			t.Error(err)
		}
		t.Log(report.String())
	}
	return r
}

// judge says what is wrong with the first cause.
func judge(c *causetest.Case, cause *evidence.Cause) string {
	if cause == nil {
		return "unknown"
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	// A cause that an experiment proved only for a store on the way names that store.
	middle := cause.Site != nil && cause.Proof == evidence.Proved && slices.Contains(c.Hops, cause.Site.Line) && tells(cause, c.Line)
	if !c.IsKind(cause.Kind) && !(middle && cause.Kind == evidence.CauseBadValue) {
		say("the kind is %s, not %s", cause.Kind, c.Kind)
	}
	variables, pattern := []string{cause.Variable}, evidence.PatternKind("")
	if i := cause.Interleaving; i != nil {
		variables, pattern = i.Variables, i.Pattern
		if c.Pattern == evidence.PatternLockOrder && len(i.Passing) != len(i.Failing) {
			say("of the %d orders of locks the passing run shows %d", len(i.Failing), len(i.Passing))
		}
		if c.Missing != i.Missing && c.Missing != "" {
			say("the missing lock is %q, not %q", i.Missing, c.Missing)
		}
	}
	if !c.IsVariable(variables...) {
		say("the variable is %v, not %s", variables, c.Variable)
	}
	if !c.IsPattern(pattern) {
		say("the pattern is %q, not %q", pattern, c.Pattern)
	}
	if !middle && (cause.Site == nil || filepath.Base(cause.Site.File) != filepath.Base(c.Source) || !c.IsLine(cause.Site.Line)) {
		line := 0
		if cause.Site != nil {
			line = cause.Site.Line
		}
		say("the line is %d, not %d", line, c.Line)
	}
	if cause.Proof != evidence.Proved {
		say("it is %s, not proved", cause.Proof)
	}
	if with, without := replaysOf(cause, true), replaysOf(cause, false); with == 0 || without == 0 {
		say("%d replays failed with it, %d passed without", with, without)
	}
	for _, e := range cause.Experiments {
		// A deadlock's process may wait for more input than there was.
		if !e.Expect && e.Agrees() && e.Outcome != "exit status 0" && cause.Kind != evidence.CauseDeadlock {
			say("%q counts, after which the run came to %q", e.What, e.Outcome)
		}
	}
	return strings.Join(wrong, "; ")
}

// tells reports whether the story of a cause has a line.
func tells(cause *evidence.Cause, line int) bool {
	return slices.ContainsFunc(cause.Story, func(s evidence.CauseStep) bool {
		return s.Site != nil && s.Site.Line == line || s.Access != nil && s.Access.Site != nil && s.Access.Site.Line == line
	})
}

// replaysOf counts the replays of experiments that came out as expected: those that failed,
// or those that did not.
func replaysOf(cause *evidence.Cause, failed bool) (n int) {
	for i := range cause.Experiments {
		if e := &cause.Experiments[i]; e.Expect == failed && e.Agrees() {
			n += e.Runs
		}
	}
	return n
}
