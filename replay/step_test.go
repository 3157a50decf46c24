package replay_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// Every access is reported with the arrival at its instruction: a preemption at that arrival
// occurs at that access.
func TestStepping(t *testing.T) {
	m := recordMarks(t)
	core := coreOf(t, m.rec)
	at := symbol(t, core, "at")
	windows := map[uint32]replay.StepWindow{}
	for _, s := range m.steps[0] {
		windows[s.thread] = replay.StepWindow{From: s.ordinal, To: s.ordinal}
	}
	trace := func(list []eventlog.Preemption) (stores []replay.Stepped, left string) {
		left, _, err := m.replay(t, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}, Stepping: replay.Stepping{
			Windows: windows, Most: 1 << 20, On: func(s *replay.Stepped) {
				if s.Addr == at && s.Kind == evidence.Write {
					stores = append(stores, *s)
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		return stores, left
	}
	stores, left := trace([]eventlog.Preemption{})
	plain, _, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: []eventlog.Preemption{}}})
	if err != nil || left != plain || len(stores) != 3*marks {
		t.Fatalf("%s, without stepping %s, %d stores, %v", left, plain, len(stores), err)
	}
	for i, s := range stores {
		step := m.steps[0][i/marks]
		if s.Thread != step.thread || s.Ordinal != step.ordinal || s.Count != uint64(i%marks)+1 || s.Position != step.begin || s.Next == 0 {
			t.Errorf("store %d is %+v, of %+v", i, s, step)
		}
	}
	// Right before the third store of the first thread: the other two threads see the old value,
	// and their marks overwrite its own.
	s := stores[2]
	list := []eventlog.Preemption{{Thread: s.Thread, Ordinal: s.Ordinal, Class: eventlog.PointPC, PC: s.PC, Count: s.Count, Until: m.all(0)}}
	traced, left := trace(list)
	plain, _, err = m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}})
	if err != nil || left != plain || len(traced) != 3*marks {
		t.Fatalf("preempted: %s, without stepping %s, %d stores, %v", left, plain, len(traced), err)
	}
	if s := traced[2*marks+2]; s.Count != 0 || s.Behind != 1 || s.Position != m.all(0) {
		t.Errorf("the store after the preemption is %+v", s)
	}
	if s := traced[2*marks+3]; s.Count != 1 || s.Behind != 1 {
		t.Errorf("the next is %+v", s)
	}
}

// Loops are not stepped to their end, but the code after them is stepped.
func TestSteppingLeavesLoops(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/apache.c")
	if err != nil {
		t.Fatal(err)
	}
	p.Ends = ""
	rec, err := record.Open(p.Record(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	windows := map[uint32]replay.StepWindow{2: {From: 4, To: 1000}, 3: {From: 4, To: 1000}}
	most := uint64(1 << 17)
	seen := map[uint32]int{}
	core := coreOf(t, rec)
	main := core.ModuleAt(symbol(t, core, "main"))
	step := &replay.Stepping{Windows: windows, Most: most, On: func(s *replay.Stepped) {
		if s.Called == 0 && s.Addr >= main.Start && s.Addr < main.End {
			seen[s.Thread]++
		}
	}}
	r, _ := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: []eventlog.Preemption{}}, Stepping: *step})
	if r == nil || r.End == replay.EndMoment {
		t.Fatalf("%d instructions do not do: %+v", most, r)
	}
	if seen[2] < 3 || seen[3] < 3 {
		t.Errorf("accesses of globals: %v", seen)
	}
}

// A loop that contains a place is like any other: the code that finds the place is neither stepped
// nor reported.
func TestSteppingLeavesLoopsWithPlaces(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/turning.c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	core := coreOf(t, rec)
	turning, seen, last := symbol(t, core, "turning"), 0, uint64(0)
	for e := range rec.Log.Ordered() {
		if e != nil && e.Thread == 2 {
			last = e.Ordinal
		}
	}
	step := &replay.Stepping{Windows: map[uint32]replay.StepWindow{2: {From: 1, To: 1000}}, Most: 1 << 15, On: func(s *replay.Stepped) {
		if s.Called == 0 && s.Addr == turning {
			seen++
		}
		// The first steps go through what the recorder has patched.
		if s.Ordinal == last && core.ModuleAt(s.PC) == nil {
			t.Errorf("an access in code of no thread's: %+v", s)
		}
	}}
	r, err := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: []eventlog.Preemption{}}, Verify: true, Stepping: *step})
	if err != nil || r.End != replay.EndFailure || seen != 1 {
		t.Fatalf("%+v, %v, %d accesses of the global", r, err, seen)
	}
	if text := recordtest.Differences(r); text != "" {
		t.Error(text)
	}
}

// If a step is longer than its share, the rest of it is not reported, but the beginnings of the
// later ones are.
func TestSteppingShares(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/apache.c")
	if err != nil {
		t.Fatal(err)
	}
	p.Ends = ""
	rec := open(t, p.Record(t).Dir)
	events := map[uint32]uint64{}
	for e := range rec.Log.Ordered() {
		if e != nil {
			events[e.Thread] = e.Ordinal
		}
	}
	last := min(events[2], events[3]) // both threads get this far, whether the run fails or not
	const share = 60                  // fewer than it takes to notice a loop
	steps := map[uint32]map[uint64]bool{2: {}, 3: {}}
	step := &replay.Stepping{Windows: map[uint32]replay.StepWindow{2: {From: 4, To: last}, 3: {From: 4, To: last}}, Most: 1 << 17, Share: share, On: func(s *replay.Stepped) {
		steps[s.Thread][s.Ordinal] = true
		if s.Count > share && s.Count < 1<<62 {
			t.Errorf("arrival %d of %d instructions: %+v", s.Count, share, s)
		}
	}}
	r, err := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: []eventlog.Preemption{}}, Stepping: *step})
	if r == nil || r.End == replay.EndMoment || !r.StepsCut {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(steps[2]) < 2 || len(steps[3]) < 2 {
		t.Errorf("steps that are told of: %v", steps)
	}
}
