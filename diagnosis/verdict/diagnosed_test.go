package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// mostRecorded bounds how often a program is recorded until it fails: on a busy machine its threads may come in another order.
const mostRecorded = 200

// diagnosed compiles a program, records it until a run ends as recordtest.EndOf says it, and returns what is found out
// about the recording, with one replay for each experiment.
func diagnosed(t *testing.T, p crashtest.Program, args []string, ends string) *evidence.Case {
	t.Helper()
	path := crashtest.Compile(t, p)
	recorded := recordedUntil(t, path, args, ends)
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	return result
}

// diagnosedFile is what is found out about a program in a file, as recordtest.Read reads it, with other flags and arguments. It has a cause.
func diagnosedFile(t *testing.T, source string, clang bool, flags, args []string) *evidence.Diagnosis {
	t.Helper()
	p, err := recordtest.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	p.Clang, p.Flags, p.Args = clang, flags, args
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{p.Record(t).Dir}, Replays: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := result.Diagnosis; len(d.Causes) == 0 {
		t.Fatalf("no cause; excluded: %v", d.Excluded)
	}
	return result.Diagnosis
}

// recordedUntil records a program until a run ends as recordtest.EndOf says it.
func recordedUntil(t *testing.T, path string, args []string, ends string) *recordtest.Recorded {
	t.Helper()
	for n := 0; ; n++ {
		recorded := recordtest.RecordProgram(t, path, args, "", "")
		if recordtest.EndOf(recorded.Result) == ends {
			return recorded
		}
		if n == mostRecorded {
			t.Fatalf("it ended %d times otherwise than with %s, at last with %s\n%s", n, ends, recordtest.EndOf(recorded.Result), recorded.Output)
		}
	}
}

// build is one way to compile a program of a test.
type build struct{ source, compiler, level string }

// eachBuild checks what is found out about each of some builds of programs, whose texts are found by their names.
func eachBuild(t *testing.T, builds []build, text func(source string) string, ends string, check func(t *testing.T, source string, d *evidence.Diagnosis), flags ...string) {
	t.Helper()
	for _, b := range builds {
		t.Run(strings.Join([]string{b.source, b.compiler, b.level}, " "), func(t *testing.T) {
			p := crashtest.Program{Source: b.source, Text: text(b.source), Compiler: b.compiler, Flags: append([]string{b.level}, flags...)}
			check(t, b.source, diagnosed(t, p, nil, ends).Diagnosis)
		})
	}
}

// lineOf is the number of the line of a source text that has a mark.
func lineOf(text, mark string) int {
	before, _, _ := strings.Cut(text, mark)
	return strings.Count(before, "\n") + 1
}

// isCause reports whether a line of a source text, counted from 1, ends in the mark of a cause.
func isCause(text string, line int) bool { return endsIn(text, line, "// CAUSE") }

// endsIn reports whether a line of a source text, counted from 1, ends in a mark.
func endsIn(text string, line int, mark string) bool {
	lines := strings.Split(text, "\n")
	return line > 0 && line <= len(lines) && strings.HasSuffix(lines[line-1], mark)
}
