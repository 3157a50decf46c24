package replay_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// A thread that waits in a loop is reported with the memory that it reads there; a thread that
// computes is not.
func TestStuckTellsSpinning(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/spins.c")
	if err != nil {
		t.Fatal(err)
	}
	spun := func(rec *record.Recording) (*replay.StuckError, evidence.Addr) {
		_, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: []eventlog.Preemption{}}})
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
	// If the other thread's call occurred before the first thread looked, the first need not wait.
	var rec *record.Recording
	var stuck *replay.StuckError
	var addr evidence.Addr
	for range mostRecordings {
		rec = open(t, p.Record(t).Dir)
		// On a busy machine the program's start alone may take as long as the program may compute.
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
	if !stuck.Endless || stuck.After >= time.Minute {
		t.Errorf("that it turns for good was not seen: %v", stuck)
	}
	for _, want := range []string{"a loop that it cannot leave", "thread 1", "turns in a loop that reads", "ready", "which holds 0x0", "await (spins.c:"} {
		if !strings.Contains(stuck.Error(), want) {
			t.Errorf("%q is missing in %v", want, stuck)
		}
	}
	if stuck, addr := spun(open(t, recordBasic(t, "compute").Dir)); addr != 0 {
		t.Errorf("one that computes: %v", stuck)
	}
}

// A look at a thread that computes does not change the replay: it ends with the recorded memory,
// and all arrivals at a place are counted.
func TestLookDisturbsNothing(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/counts.c")
	if err != nil {
		t.Fatal(err)
	}
	const arrivals = 50_000 // each is a trap, so it runs long enough for a look
	rec := open(t, p.Record(t).Dir)
	core := coreOf(t, rec)
	for range mostRecordings {
		var count [4]byte
		options := replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Hooks: []replay.Hook{{
			At: evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSyscall, unix.SYS_GETPPID)[0], PC: symbol(t, core, "arrive"), Count: arrivals},
			Do: func(s *replay.Stopped) error {
				_, err := s.ReadMemory(symbol(t, core, "count"), count[:])
				return err
			},
		}}}, Verify: true}
		r, err := replay.Run(t.Context(), rec, options)
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(count[:]); got != arrivals {
			t.Errorf("at arrival %d, after %d looks, the count is %d", arrivals, replay.Looks(r), got)
		}
		if !r.Comparison.Identical() {
			t.Errorf("after %d looks: %s", replay.Looks(r), recordtest.Differences(r))
		}
		if replay.Looks(r) > 0 {
			return
		}
	}
	t.Error("it was never looked at")
}
