package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// diagnosed compiles a program, records a run that ends as recordtest.RecordProgram says it, and returns what is found out
// about the recording, with one replay for each experiment.
func diagnosed(t *testing.T, p crashtest.Program, args []string, ends string) *evidence.Case {
	t.Helper()
	recorded := recordtest.RecordProgram(t, crashtest.Compile(t, p), args, "", ends)
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	return result
}

// lineOf is the number of the line of a source text that has a mark.
func lineOf(text, mark string) int {
	before, _, _ := strings.Cut(text, mark)
	return strings.Count(before, "\n") + 1
}
