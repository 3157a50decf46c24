package replay_test

import (
	"os"
	"strconv"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/ptrace"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// timesVariable says how often each recording is replayed.
const timesVariable = "DIAGNOSE_TEST_REPLAYS"

func replays(t *testing.T) int {
	t.Helper()
	const few = 3
	text := os.Getenv(timesVariable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", timesVariable, err)
	}
	return n
}

// TestIdentity records each program and replays it several times.
func TestIdentity(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/record") {
		t.Run(p.Name, func(t *testing.T) {
			if p.Never != "" {
				t.Skip(p.Never)
			}
			// A place within a string instruction has one trap. That of an int3 is not lost.
			if p.Name == "signals/strings" && ptrace.DebugRegistersFire() == nil {
				skipWhereTrapsAreLost(t)
			}
			if err := ptrace.CounterTraps(); err != nil && p.Name == "basic/counter" {
				t.Skip(&crashtest.UnsupportedError{What: err.Error()})
			}
			r := p.Record(t)
			p.CheckEvents(t, r.Dir)
			if p.Varies != "" {
				recordtest.Reaches(t, r.Dir, times)
				return
			}
			recordtest.Identical(t, r.Dir, times)
		})
	}
}
