package reports

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
)

func scanText(t *testing.T, s evidence.Scan) string {
	t.Helper()
	for i := range s.Suspects {
		s.Suspects[i].Proof = evidence.FromCore
	}
	c := &evidence.Case{Failure: evidence.Failure{Kind: evidence.Abort, Sentence: "x", Proof: evidence.FromCore}, Scan: &s}
	var out strings.Builder
	if err := Write(&out, c, Options{Format: Text}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A scan that resolved only some of the operands must not claim that the
// code touches nothing.
func TestNoSuspects(t *testing.T) {
	all := scanText(t, evidence.Scan{Functions: []string{"f"}, MemoryOperands: 3})
	some := scanText(t, evidence.Scan{Functions: []string{"f"}, MemoryOperands: 3, Unresolved: 1})
	if !strings.Contains(all, "the code touches no global") || strings.Contains(some, "the code touches no global") ||
		!strings.Contains(some, "none: no operand that could be resolved") {
		t.Errorf("all resolved:\n%s\none not:\n%s", all, some)
	}
}

func TestScanNames(t *testing.T) {
	text := scanText(t, evidence.Scan{
		Functions: []string{"count(std::vector<int, std::allocator<int> > const&)"},
		Suspects: []evidence.Suspect{{Kind: evidence.SuspectCell, Name: "z", Address: 0x10, Size: 4, Access: evidence.Read,
			Lines: []evidence.SuspectUse{{Access: evidence.Read, Site: evidence.Site{Module: "/usr/bin/prog", ModuleOffset: 0x44}}}}},
	})
	for _, want := range []string{"scanned count:", "z (the bad value's cell)", "prog+0x44 r"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
}

// The text forms list the strongest suspects and say how many more there are. JSON has them all.
func TestManySuspects(t *testing.T) {
	for _, x := range []struct {
		kind         evidence.FailureKind
		total, shown int
	}{
		{evidence.StackOverflow, 40, 10}, {evidence.StackOverflow, 10, 10},
		{evidence.NullPointer, 26, 25}, {evidence.NullPointer, 25, 25},
	} {
		c := &evidence.Case{Failure: evidence.Failure{Kind: x.kind, Sentence: "x", Proof: evidence.FromCore}, Scan: &evidence.Scan{}}
		for i := range x.total {
			c.Scan.Suspects = append(c.Scan.Suspects, evidence.Suspect{Kind: evidence.SuspectGlobal, Name: fmt.Sprintf("word%d.", i),
				Rank: i, Size: 4, Access: evidence.Read, Proof: evidence.FromCore})
		}
		for _, format := range []Format{Text, Markdown, JSON} {
			var out strings.Builder
			if err := Write(&out, c, Options{Format: format}); err != nil {
				t.Fatal(err)
			}
			shown, more := x.shown, fmt.Sprintf("and %d more in the JSON form", x.total-x.shown)
			if format == JSON {
				shown = x.total
			}
			got := strings.Count(out.String(), "word")
			if got != shown || !strings.Contains(out.String(), fmt.Sprintf("word%d.", shown-1)) {
				t.Errorf("%s of %d suspects in format %v shows %d, want %d", x.kind, x.total, format, got, shown)
			}
			if strings.Contains(out.String(), more) != (shown < x.total) {
				t.Errorf("%s of %d suspects in format %v: wrong about more:\n%s", x.kind, x.total, format, out.String())
			}
		}
	}
}
