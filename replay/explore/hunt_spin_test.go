package explore_test

import (
	"testing"

	"diagnose/replay/explore"
	"diagnose/replay/record"
)

// A thread that spins lets other threads run, and a sleep that it waits for is short in virtual
// time. A plan gives the same run, and so does a replay.
func TestHuntedSpin(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/spinner.c"))
	h := globals(record.HuntPlan, 0)
	const most = 2000 // the longest spin that is not noticed has 5,000
	if r := hunted(t, o, h); r.Failed || r.Hunted.Steps > most {
		t.Fatalf("%d steps: %s", r.Hunted.Steps, r.Why)
	}
	for _, strategy := range strategies {
		h := globals(strategy, 1)
		h.Depth, h.Length = 3, 100
		first := hunted(t, o, h)
		if first.Hunted.Steps > most {
			t.Errorf("%s: %d steps", strategy, first.Hunted.Steps)
		}
		identical(t, first.Dir)
		h.Strategy, h.Plan = record.HuntPlan, first.Hunted.Decisions
		planned := hunted(t, o, h)
		if planned.Failed != first.Failed || planned.Hunted.Steps != first.Hunted.Steps || planned.Hunted.Unused != 0 {
			t.Errorf("%s: %+v, as planned %+v", strategy, first.Hunted, planned.Hunted)
		}
	}
}

// Where threads spin, few preemptions are enough: they are not spent in the loops. The seeds
// are the same each time, and so are the results.
func TestHuntSpin(t *testing.T) {
	const seeds = 400 // some tens are needed
	o := huntOptions(optionsOf(t, huntProgram(t, "hunt/spinner.c")))
	o.Seeds, o.FirstOnly = seeds, true
	for _, o.Strategy = range []record.HuntStrategy{record.HuntPCT, record.HuntDelay, record.HuntRandom} {
		r, err := explore.Hunt(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Found || r.Plain || r.Hung > 0 {
			t.Errorf("%s: after %d schedules, %d of them without an end, %+v", o.Strategy, r.Schedules, r.Hung, r.Failure)
		}
		t.Logf("%s: %d schedules of some %d steps", o.Strategy, r.Schedules, r.Steps)
	}
}

// Threads that poll run again only after the others, however they poll: a right program ends with
// every schedule.
func TestHuntPolls(t *testing.T) {
	p := huntProgram(t, "hunt/polls.c")
	for _, how := range []string{"sleep", "usleep", "past", "yield", "pause", "condition", "semaphore", "stream", "nothing"} {
		o := huntOptions(optionsOf(t, p, how))
		o.Seeds = 20
		for _, o.Strategy = range []record.HuntStrategy{record.HuntPCT, record.HuntDelay, record.HuntRandom} {
			r, err := explore.Hunt(t.Context(), o)
			if err != nil {
				t.Fatalf("%s, %s: %v", how, o.Strategy, err)
			}
			if r.Found || r.Hung > 0 {
				t.Errorf("%s, %s: after %d schedules, %d of them without an end, %+v", how, o.Strategy, r.Schedules, r.Hung, r.Failure)
			}
		}
	}
}

// A thread that others pass over gets its turn in a plan's run where it gets it in the seed's.
func TestHuntedPolls(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/polls.c"), "stream")
	for _, strategy := range strategies {
		for seed := range uint64(8) {
			h := globals(strategy, seed)
			h.Depth, h.Length = 3, 166
			first := hunted(t, o, h)
			h.Strategy, h.Plan = record.HuntPlan, first.Hunted.Decisions
			planned := hunted(t, o, h)
			if first.Failed || planned.Hunted.Steps != first.Hunted.Steps || planned.Hunted.Unused != 0 {
				t.Errorf("%s %d: %+v, as planned %+v", strategy, seed, first.Hunted, planned.Hunted)
			}
			if seed == 5 {
				identical(t, first.Dir)
			}
		}
	}
}
