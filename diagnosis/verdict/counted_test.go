package verdict

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// Where a loop of the last store made the value, what it began with is told, and not where that came from.
func TestCountedSummary(t *testing.T) {
	at := func(line int) evidence.SeenAccess {
		return evidence.SeenAccess{Site: &evidence.Site{Function: "shift", File: "shift.c", Line: line}, New: "4294967290"}
	}
	c := &chain{work: &work{}, victim: victim{name: "n"}, links: []link{{seen: at(7), times: 6}, {seen: at(3)}}}
	out := &evidence.Cause{Kind: evidence.CauseBadValue}
	if text := c.account().summary(out); !strings.HasSuffix(text, "its bad value 4294967290, counting from 0") {
		t.Errorf("a counted value: %q", text)
	}
	c.links[0].times = 0
	if text := c.account().summary(out); !strings.HasSuffix(text, "which comes from shift (shift.c:3)") {
		t.Errorf("a stored value: %q", text)
	}
}
