package verdict_test

import (
	"os"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// TestMistyped: an argument whose type is not the parameter's is the cause of what its value led to, where the call is marked BUG; types
// that differ and were meant are not, and what the program says is CAUSE is told.
func TestMistyped(t *testing.T) { markedCauses(t, "mistyped", " passes ") }

// TestUnpassed: the same for formats that take arguments which the call does not have.
func TestUnpassed(t *testing.T) { markedCauses(t, "formats", "a format that is no constant") }

// markedCauses asks for the cause at the line that each program of a directory marks, and for words in its summary where it is marked BUG. One that
// is marked TWIN must have no cause with these words.
func markedCauses(t *testing.T, dir, words string) {
	crashtest.TracesAccesses(t)
	for _, p := range recordtest.Programs(t, "../../internal/testdata/"+dir) {
		for _, clang := range []bool{false, true} {
			for _, level := range []string{"-O0", "-O2"} {
				name := p.Name + level
				if clang {
					name += "-clang"
				}
				t.Run(name, func(t *testing.T) {
					x := *p
					x.Clang, x.Flags = clang, append(p.Flags[:len(p.Flags):len(p.Flags)], level)
					result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{x.Record(t).Dir}, Replays: 1})
					if err != nil {
						t.Fatal(err)
					}
					if err := result.Check(); err != nil {
						t.Error(err)
					}
					causes := result.Diagnosis.Causes
					if strings.HasSuffix(bugOf(t, p.Source), "TWIN */") {
						for i := range causes {
							if strings.Contains(causes[i].Summary, words) {
								t.Errorf("%q", causes[i].Summary)
							}
						}
						return
					}
					if len(causes) == 0 {
						t.Fatal("no cause is named")
					}
					line := marked(t, p.Source)
					if k := causes[0].Kind; k != evidence.CauseBadValue && k != evidence.CauseBadInput {
						t.Errorf("%s: %q", causes[0].Kind, causes[0].Summary)
					}
					if c := &causes[0]; c.Site == nil || c.Site.Line != line || strings.Contains(c.Summary, words) != strings.HasSuffix(bugOf(t, p.Source), "BUG */") {
						t.Errorf("%+v: %q, want line %d", c.Site, c.Summary, line)
					}
				})
			}
		}
	}
}

// bugOf is the line of a source that is marked.
func bugOf(t *testing.T, source string) string {
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, "BUG */") || strings.HasSuffix(line, "CAUSE */") || strings.HasSuffix(line, "TWIN */") {
			return line
		}
	}
	t.Fatal("no line is marked")
	return ""
}

// marked is its number.
func marked(t *testing.T, source string) int {
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(b), bugOf(t, source))
	return strings.Count(before, "\n") + 1
}
