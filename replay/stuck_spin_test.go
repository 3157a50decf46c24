package replay_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/record"
	"diagnose/replay"
)

// A thread that waits in a loop is told with what it reads there; one that computes is
// not.
func TestStuckTellsSpinning(t *testing.T) {
	p, err := recordtest.Read("../testdata/schedule/spins.c")
	if err != nil {
		t.Fatal(err)
	}
	spun := func(rec *record.Recording) (*replay.StuckError, evidence.Addr) {
		_, err := replay.Run(t.Context(), rec, replay.Options{Timing: record.TimingEager, Preemptions: []record.Preemption{}, Computing: 300 * time.Millisecond})
		var stuck *replay.StuckError
		if err == nil {
			return nil, 0
		}
		if !errors.As(err, &stuck) || !stuck.Computing {
			t.Fatalf("a thread that gets nowhere: %v", err)
		}
		for _, w := range stuck.Threads {
			if len(w.Spins) > 0 {
				return stuck, w.Spins[0].Addr
			}
		}
		return stuck, 0
	}
	// Where the other thread's call came before the first looked, it need not wait.
	var rec *record.Recording
	var stuck *replay.StuckError
	var addr evidence.Addr
	for range mostRecordings {
		rec = open(t, p.Record(t).Dir)
		// On a busy machine the program's start alone may take as long as it may compute.
		if stuck, addr = spun(rec); stuck != nil && strings.Contains(stuck.Error(), "await (spins.c:") {
			break
		}
	}
	if stuck == nil {
		t.Fatalf("in %d recordings no thread waited", mostRecordings)
	}
	core := coreOf(t, rec)
	if addr != symbol(t, core, "ready") {
		t.Errorf("it spins on %v: %v", addr, stuck)
	}
	for _, want := range []string{"thread 1", "turns in a loop that reads", "ready", "which holds 0x0", "await (spins.c:"} {
		if !strings.Contains(stuck.Error(), want) {
			t.Errorf("%q is missing in %v", want, stuck)
		}
	}
	if stuck, addr := spun(open(t, recordBasic(t, "compute").Dir)); addr != 0 {
		t.Errorf("one that computes: %v", stuck)
	}
}
