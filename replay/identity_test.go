package replay_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/record/eventlog"
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

// needsMachine skips a program that this machine cannot replay.
func needsMachine(t *testing.T, p *recordtest.Program) {
	t.Helper()
	switch p.Name {
	case "signals/strings": // a place within a string instruction has one trap; that of an int3 is not lost
		if ptrace.DebugRegistersFire() == nil {
			skipWhereTrapsAreLost(t)
		}
	case "basic/counter": // has reads of the counter that cannot be patched
		if err := ptrace.CounterTraps(); err != nil {
			t.Skip(&crashtest.UnsupportedError{What: err.Error()})
		}
	}
}

// TestIdentity records each program and replays it several times.
func TestIdentity(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/record") {
		t.Run(p.Name, func(t *testing.T) {
			if p.Never != "" {
				t.Skip(p.Never)
			}
			needsMachine(t, p)
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

// TestCounterLimit: where reads of the counter do not trap, the recording of a program that has some which cannot be patched says so.
func TestCounterLimit(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/record/basic/counter.c")
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := p.Record(t).Open(t)
	said := slices.ContainsFunc(rec.Manifest.Limits, func(l eventlog.Limit) bool { return l.Kind == "counter" })
	if missed := ptrace.CounterTraps() != nil; said != missed {
		t.Errorf("the limits are %v", rec.Manifest.Limits)
	}
}
