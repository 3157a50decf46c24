package replay_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// Calls that are not events are reported at full speed, with the arrival at their return address.
// A preemption there is between two of the calls.
func TestSteppingCalls(t *testing.T) {
	const times = 5 // TIMES of relocks.c
	p, err := recordtest.Read("../internal/testdata/schedule/relocks.c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	core := coreOf(t, rec)
	lock, unlock, mutex := symbol(t, core, "pthread_mutex_lock"), symbol(t, core, "pthread_mutex_unlock"), symbol(t, core, "mutex")
	var taken uint64
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindMutex && e.Object == uint64(mutex) {
			taken = e.Ordinal
		}
	}
	calls := func(list []eventlog.Preemption) map[evidence.Addr][]replay.Stepped {
		told := map[evidence.Addr][]replay.Stepped{}
		step := &replay.Stepping{Windows: map[uint32]replay.StepWindow{2: {From: 1, To: 1000}}, Calls: []evidence.Addr{unlock, lock}, On: func(s *replay.Stepped) {
			if s.First == uint64(mutex) {
				told[s.Called] = append(told[s.Called], *s)
			}
		}}
		r, err := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}, Verify: true, Stepping: *step})
		if err != nil || r.End != replay.EndFailure {
			t.Fatalf("%+v, %v", r, err)
		}
		if text := recordtest.Differences(r); text != "" {
			t.Error(text)
		}
		return told
	}
	told := calls([]eventlog.Preemption{})
	// The first lock is the event.
	if taken == 0 || len(told[lock]) != times-1 || len(told[unlock]) != times {
		t.Fatalf("event %d: %+v", taken, told)
	}
	for i, s := range told[unlock] {
		if s.Thread != 2 || s.Ordinal != taken || s.Count != uint64(i)+1 || s.Behind != 0 || core.ModuleAt(s.PC) != core.ModuleAt(mutex) {
			t.Errorf("unlock %d: %+v", i, s)
		}
	}
	for i, s := range told[lock] {
		if s.Ordinal != taken || s.Count != uint64(i)+2 {
			t.Errorf("lock %d: %+v", i+2, s)
		}
	}
	// After a preemption, arrivals are counted from there.
	third := told[unlock][2]
	told = calls([]eventlog.Preemption{{Thread: 2, Ordinal: taken, Class: eventlog.PointPC, PC: third.PC, Count: third.Count, Until: third.Position}})
	if len(told[unlock]) != times {
		t.Fatalf("preempted: %+v", told)
	}
	if s := told[unlock][3]; s.Behind != 1 || s.Count != 1 {
		t.Errorf("after the preemption: %+v", s)
	}
}
