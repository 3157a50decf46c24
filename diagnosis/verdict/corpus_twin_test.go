package verdict_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/internal/causetest"
	"diagnose/replay/record"
)

// twinRuns are two that are run as the failing one, and one as the passing one.
const twinRuns = 3

// TestTwins gives recordings of races without their bug to the whole tool, with the
// program's functions as what failed, and one run declared to have failed: as it ends
// no differently in any order, nothing may be named. Of the program with the bug, given
// in the same way, something is.
func TestTwins(t *testing.T) {
	for i, c := range racing(t) {
		if i%6 > 0 && !causetest.FullMatrix() {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			twins := c.Twins(t, twinRuns)
			refused(t, twins[0])
			for i := range 2 {
				others := slices.Delete(slices.Clone(twins), i, i+1)
				if found := named(t, c, declared(t, twins[i]), others); len(found) > 0 {
					t.Errorf("of the twin: %v", found)
				}
			}
			if found := named(t, c, c.Failing(t).Dir, c.Passing(t, passingRuns)); len(found) == 0 {
				t.Error("of the program with the bug: nothing")
			}
		})
	}
}

// racing are the cases whose cause is an order: those in C without optimisation, with
// the whole matrix those in C++ and Rust, and with it, as well.
func racing(t *testing.T) []*causetest.Case {
	return slices.DeleteFunc(causetest.Cases(t, "../../internal/testdata/cause"), func(c *causetest.Case) bool {
		plain := filepath.Ext(c.Source) == ".c" && c.Level == "O0"
		return c.Pattern == "" || c.Search != "" || c.Compiler != "gcc" || !plain && !causetest.FullMatrix()
	})
}

// refused: a run that passed is none that failed.
func refused(t *testing.T, twin *record.Recording) {
	t.Helper()
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{twin.Dir}})
	var outcome *verdict.OutcomeError
	if !errors.As(err, &outcome) {
		t.Errorf("crash --recording of the twin: %v", err)
	}
	if err == nil && result.Diagnosis != nil {
		t.Errorf("names %v", result.Diagnosis.Causes)
	}
}

// declared is a copy of a recording that says of itself that the run failed, as one does
// whose heap was found damaged at the end: it fails again whenever it ends so again.
func declared(t *testing.T, rec *record.Recording) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(rec.Dir))
	if err := os.CopyFS(dir, os.DirFS(rec.Dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, record.ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m["outcome"].(map[string]any)["evidence"] = "declared"
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// definitions are where functions of the programs begin, by the ends of their sources'
// names. In C++ they may be in a class.
var definitions = map[string]*regexp.Regexp{
	".c":  regexp.MustCompile(`(?m)^(?:__attribute__\(\(\w+\)\) )?[a-z][^;={}()\n]*[ *](\w+)\([^;{}\n]*\)[^;{}\n]*\n?\{`),
	".cc": regexp.MustCompile(`(?m)^\t?(?:__attribute__\(\(\w+\)\) )?[a-z][^;={}()\n]*[ *&](\w+)\([^;{}\n]*\)[^;{}\n]*\n?\t?\{`),
	".rs": regexp.MustCompile(`(?m)^\s*(?:pub )?fn (\w+)`),
}

// functionsOf are those of the source but main.
func functionsOf(t *testing.T, c *causetest.Case) []string {
	t.Helper()
	source, err := os.ReadFile(c.Source)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range definitions[filepath.Ext(c.Source)].FindAllStringSubmatch(string(source), -1) {
		if m[1] != "main" && !slices.Contains(list, m[1]) {
			list = append(list, m[1])
		}
	}
	return list
}

// looked reports whether a variable with that in its name was seen accessed.
func looked(d *evidence.Diagnosis, name string) bool {
	return slices.ContainsFunc(d.Watched, func(v evidence.Watched) bool { return strings.Contains(v.Name, name) && v.Hits > 0 })
}

// named is what the whole tool names, with the suspects of all functions. Some of them
// are hot.
func named(t *testing.T, c *causetest.Case, failing string, passing []*record.Recording) []string {
	t.Helper()
	req := driver.Request{Recordings: []string{failing}, Functions: functionsOf(t, c), Hits: 1 << 16}
	for _, p := range passing {
		req.Passing = append(req.Passing, p.Dir)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	result, err := driver.Crash(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	d := result.Diagnosis
	if d == nil {
		t.Fatalf("there is no diagnosis; limits: %v", result.Limits)
	}
	if d.Coverage.Hits == 0 && c.Pattern != evidence.PatternLockOrder {
		t.Errorf("nothing was seen of %v; limits: %v, %v", req.Functions, d.Coverage.Limits, result.Limits)
	}
	if line := c.ObjectLine; line > 0 && filepath.Ext(c.Source) == ".cc" && len(d.Causes) == 0 && !looked(d, fmt.Sprintf(" at %s:%d (", filepath.Base(c.Source), line)) {
		t.Errorf("the object of line %d was not looked at: %+v; limits: %v", line, d.Watched, d.Coverage.Limits)
	}
	var found []string
	for i := range d.Causes {
		found = append(found, string(d.Causes[i].Proof)+": "+d.Causes[i].Summary)
		for _, e := range d.Causes[i].Experiments {
			t.Logf("%s: %d of %d failed (%s) %s", e.What, e.Failed, e.Runs, e.Outcome, e.Undecided)
		}
	}
	return found
}
