package verdict_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"diagnose/evidence"
)

// TestOverrunHandedOn: text runs out of its array into a pointer that another object is given before it is used. The cause is the first store out
// of the array, and neither the last one nor who handed the pointer on. In the longer text the same store damages what follows the
// object as well; that an experiment shows this to have no part in the failure says nothing of the store.
func TestOverrunHandedOn(t *testing.T) {
	const source = "../../internal/testdata/flow/handed_on.c"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Count(string(text[:strings.Index(string(text), "n->name[i] = s[i]")]), "\n") + 1
	// Optimised code of the shorter text is left out: the search by watchpoints names the store of the text's end there, which is out of the
	// array as well, but not the first.
	for argument, builds := range map[string][][]string{
		"a-name-of-15-by":         {{"-O0"}, {"-O0", "-DHEAP"}},
		"a-name-of-so-many-bytes": {{"-O0"}, {"-O0", "-DHEAP"}, {"-O1", "-DHEAP"}, {"-O2"}},
	} {
		for _, flags := range builds {
			for _, clang := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes %v clang %v", len(argument), flags, clang), func(t *testing.T) {
					d := diagnosedFile(t, source, clang, flags, []string{argument})
					c := &d.Causes[0]
					if c.Kind != evidence.CauseOverwritten && c.Kind != evidence.CauseHeapOverflow || c.Site == nil || c.Site.Function != "set_name" || c.Site.Line != line {
						t.Errorf("%s (%s)", c.Summary, c.Kind)
					}
					for _, x := range d.Excluded {
						if strings.Contains(x.Text, "set_name") {
							t.Errorf("excluded: %s", x.Text)
						}
					}
				})
			}
		}
	}
}
