package reports

import (
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
