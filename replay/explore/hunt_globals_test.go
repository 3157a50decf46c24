package explore_test

import (
	"path/filepath"
	"slices"
	"testing"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// globals returns a schedule with preemptions at accesses of global variables.
func globals(strategy record.HuntStrategy, seed uint64) record.Hunt {
	return record.Hunt{Strategy: strategy, Seed: seed, Depth: 8, Length: 800, Chance: 1 << 13, Globals: true, Processor: -1}
}

// preempted counts the preemptions of a recording at instructions.
func preempted(t *testing.T, dir string) (count int, pcs map[uint64]bool) {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	pcs = map[uint64]bool{}
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindPoint && e.Args[0] == agent.PointPC {
			count++
			pcs[e.Object] = true
		}
	}
	return count, pcs
}

// Threads are preempted at accesses of globals, and the program does not see it. An ordinary
// replay, which has no points there, reaches the same end.
func TestHuntedGlobals(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/globals.c"))
	for i, strategy := range strategies {
		r := hunted(t, o, globals(strategy, uint64(i)+1))
		if r.Failed {
			t.Fatalf("%s: %s", strategy, r.Why)
		}
		g := r.Hunted.Globals
		if g == nil || g.Points < 10 || g.Points > g.Of {
			t.Fatalf("%s: points %+v", strategy, g)
		}
		count, pcs := preempted(t, r.Dir)
		if count == 0 || strategy == record.HuntRandom && len(pcs) < 5 {
			t.Fatalf("%s: preempted %d times at %d instructions", strategy, count, len(pcs))
		}
		identical(t, r.Dir)
	}
}

// The same seed gives the same order of events, including preemptions at instructions. So do
// its decisions, with a recording or without.
func TestHuntedGlobalsAgain(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/globals.c"))
	h := globals(record.HuntPCT, 3)
	first := hunted(t, o, h)
	events := eventsOf(t, first.Dir)
	for range 3 {
		if again := hunted(t, o, h); !slices.Equal(events, eventsOf(t, again.Dir)) {
			t.Fatal("the same seed had another order of events")
		}
	}
	plan := record.Hunt{Strategy: record.HuntPlan, Plan: first.Hunted.Decisions, Globals: true, Processor: -1}
	if planned := hunted(t, o, plan); !slices.Equal(events, eventsOf(t, planned.Dir)) {
		t.Error("its decisions, as a plan, had another order of events")
	}
	h.Quiet = true
	if quiet := hunted(t, o, h); !slices.Equal(first.Hunted.Decisions, quiet.Hunted.Decisions) {
		t.Error("without a recording the decisions were others")
	}
	h.Quiet, h.Globals = false, false
	if none := hunted(t, o, h); none.Hunted.Points != 0 || none.Hunted.Globals != nil {
		t.Errorf("without global points it came to %d, of %+v", none.Hunted.Points, none.Hunted.Globals)
	}
}

// A fault of an instruction that a jump replaces has the program's own address, for the
// program's handler and in the core.
func TestHuntedGlobalsFault(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/globals_fault.c"))
	for i, strategy := range strategies {
		r := hunted(t, o, globals(strategy, uint64(i)+1))
		if r.Outcome.Kind != record.OutcomeSignal || r.Outcome.PC == nil {
			t.Fatalf("%s: ended as %v", strategy, r.Outcome.String())
		}
		core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, found := core.SymbolAt(*r.Outcome.PC)
		if !found || s.Name != "store" {
			t.Errorf("%s: failed in %q at %v", strategy, s.Name, *r.Outcome.PC)
		}
		code := make([]byte, 1)
		if _, err := core.ReadMemory(*r.Outcome.PC, code); err != nil || code[0] == 0xe9 {
			t.Errorf("%s: the code there is %x: %v", strategy, code, err)
		}
		core.Close()
		identical(t, r.Dir)
	}
}

// Signals from outside reach threads at places that a replay finds.
func TestHuntedGlobalsSignals(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/globals_signal.c"))
	for seed := range uint64(3) {
		h := globals(record.HuntRandom, seed+1)
		h.Chance = 256 // the program is in its loop until the timer fires
		r := hunted(t, o, h)
		if r.Failed {
			t.Fatalf("seed %d: %s", seed+1, r.Why)
		}
		identical(t, r.Dir)
	}
}

// A race between two plain accesses is found in a program built in the ordinary way.
func TestHuntPlainRace(t *testing.T) {
	for _, strategy := range strategies {
		o := huntOptions(optionsOf(t, huntProgram(t, "hunt/lost_update.c")))
		o.Strategy = strategy
		r, err := explore.Hunt(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Found || r.Plain || r.Minimal == nil || r.Minimal.Preemptions != 1 || r.Minimal.FailingDir == "" || r.Minimal.PassingDir == "" {
			t.Fatalf("%s: %+v, %+v", strategy, r, r.Minimal)
		}
		identical(t, r.Minimal.FailingDir)
		identical(t, r.Minimal.PassingDir)
		o.NoGlobals = true
		o.FirstOnly, o.Seeds = true, 20
		if r, err = explore.Hunt(t.Context(), o); err != nil || r.Found {
			t.Fatalf("%s, without global points: %+v, %v", strategy, r, err)
		}
	}
}

// Bugs next to a call that is no event, after a release and before a wait, are found where no
// instruction names a variable.
func TestHuntCalls(t *testing.T) {
	for _, name := range []string{"hunt/lost_signal.c", "hunt/used_behind.c"} {
		for _, strategy := range strategies {
			o := huntOptions(optionsOf(t, huntProgram(t, name)))
			o.Strategy, o.NoGlobals = strategy, true
			r, err := explore.Hunt(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Found || r.Plain || r.Minimal == nil || r.Minimal.FailingDir == "" || r.Minimal.PassingDir == "" {
				t.Fatalf("%s, %s: %+v, %+v", name, strategy, r, r.Minimal)
			}
			if count, _ := preempted(t, r.Minimal.FailingDir); count == 0 {
				t.Errorf("%s, %s: nothing is preempted beside a call: %+v", name, strategy, r.Minimal)
			}
			identical(t, r.Minimal.FailingDir)
			identical(t, r.Minimal.PassingDir)
		}
	}
}

// A thread that waited for an initialisation by another one continues where it did.
func TestHuntedOnce(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "turns/initialised.c"), "20")
	for seed := range uint64(4) {
		r := hunted(t, o, globals(record.HuntRandom, seed+1))
		if r.Failed {
			t.Fatalf("seed %d: %s", seed+1, r.Why)
		}
		identical(t, r.Dir)
	}
}
