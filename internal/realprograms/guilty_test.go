package realprograms

import (
	"strings"
	"testing"
)

// TestGuilty shows that an accusation, or a missing agent, would fail the other tests.
func TestGuilty(t *testing.T) {
	t.Parallel()
	if other != "" {
		t.Skip("another library is preloaded")
	}
	program := build(t, "gcc", "guilty.c", "-w")
	w := work{name: "guilty", uses: []string{"program", "absent"}, script: "ulimit -c 0; exec $PROGRAM", env: []string{"PROGRAM=" + program}}
	for _, s := range settings {
		a := newAgent(t, s)
		got := w.once(t, t.TempDir(), environment(a))
		said := strings.Join(a.complaints(t, w.uses), "\n")
		if !strings.Contains(said, "not inside absent") {
			t.Errorf("%s: a program that did not run is not missed:\n%s", s.name, said)
		}
		if dies := !strings.Contains(s.options, "on_error=log"); dies != (got.status != "exit status 0") {
			t.Errorf("%s: %s", s.name, got.status)
		}
		if !strings.Contains(said, "the agent reports") {
			t.Errorf("%s: the overflow is not reported:\n%s", s.name, said)
		}
	}
}
