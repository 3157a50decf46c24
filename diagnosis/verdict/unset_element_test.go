package verdict_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

// TestUnsetElement: an element that nothing was stored to is read, and others of its array have values. The cause is where it is read, since it may be
// that a store is missing; its story begins where the index was made, since that is wrong here.
func TestUnsetElement(t *testing.T) {
	const source = "../../internal/testdata/flow/unset_element.c"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	marked := func(what, argument string) int {
		for i, line := range strings.Split(string(text), "\n") {
			if _, cases, found := strings.Cut(line, "/* "+what+" "); found && slices.Contains(strings.Fields(cases), argument) {
				return i + 1
			}
		}
		t.Fatalf("no line is %s %s", what, argument)
		return 0
	}
	for _, argument := range []string{"state", "record", "local", "table", "zeroed"} {
		for _, level := range []string{"-O0", "-O2"} {
			for _, clang := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s clang %v", argument, level, clang), func(t *testing.T) {
					d := diagnosedFile(t, source, clang, []string{level}, []string{argument})
					c := &d.Causes[0]
					if c.Kind != evidence.CauseUninitialised || c.Site == nil || c.Site.Line != marked("READ", argument) || strings.HasPrefix(c.Variable, "memory") {
						t.Errorf("%s (%s, %s)", c.Summary, c.Kind, c.Variable)
					}
					if !slices.ContainsFunc(c.Story, func(s evidence.CauseStep) bool { return s.Site != nil && s.Site.Line == marked("BUG", argument) }) {
						t.Errorf("the story does not have line %d: %+v", marked("BUG", argument), c.Story)
					}
				})
			}
		}
	}
}
