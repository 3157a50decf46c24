package wording

import (
	"strings"
	"testing"
)

// A name keeps its letters of any script, cannot control a terminal, and is bounded.
func TestName(t *testing.T) {
	long := strings.Repeat("a", LongestName-1)
	for name, want := range map[string]string{
		"größe.c": "größe.c", "a\x1b[2J\n": `a\x1b[2J\x0a`, "bad\xff": `bad\xff`, "r\u202el": `r\u202el`, "": "",
		long + "a": long + "a", long + "é": long + "…",
	} {
		if got := Name(name); got != want {
			t.Errorf("%.40q: %.60q, want %.60q", name, got, want)
		}
	}
}
