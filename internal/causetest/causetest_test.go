package causetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) { Main(m) }

// TestCases checks that each case is as its comments say: it fails and passes when it should,
// recordings of both are replayed to the same state, and the twin does not fail. Only a third of
// the cases is checked unless the whole matrix is wanted: the tests of verdict record each of them,
// failing and passing.
func TestCases(t *testing.T) {
	for _, c := range some(t) {
		t.Run(c.String(), func(t *testing.T) {
			if c.Search != "" {
				t.Skip(c.Search)
			}
			twin := c.startTwin(t)
			fails := c.Failing(t)
			if k := fails.Manifest.Outcome.Kind; k != record.OutcomeSignal && k != record.OutcomeExit {
				t.Errorf("the failing recording says of its end: %s", k)
			}
			recordtest.Identical(t, fails.Dir, 3)
			recordtest.Identical(t, c.Passing(t, 1)[0].Dir, 1)
			c.Twins(t, 2)
			if err := twin(); err != nil {
				t.Errorf("the fixed twin, run to pass, and not recorded: %v", err)
			}
		})
	}
}

// startTwin runs the twin as it passes, while the other steps run. The returned function says how
// it ended.
func (c *Case) startTwin(t *testing.T) func() error {
	t.Helper()
	b := c.build(t, true)
	cmd := exec.CommandContext(t.Context(), b.exe, c.arguments(t, b, passing, 0)...)
	cmd.Stdin = strings.NewReader(lines(c.inputs[passing]))
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}
