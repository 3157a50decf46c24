package record

import (
	"fmt"

	"diagnose/agent"
	"diagnose/replay/record/eventlog"
)

// HuntStrategy selects the thread that runs next in a recording that hunts.
type HuntStrategy string

// The strategies.
const (
	HuntRandom HuntStrategy = "random" // a random ready thread
	// HuntPCT runs the ready thread of the highest random priority. At Depth-1 of Length steps
	// the running thread's priority becomes the lowest (Burckhardt et al. 2010).
	HuntPCT HuntStrategy = "pct"
	// HuntDelay lets a thread run until it waits. At Depth of Length steps the next thread runs
	// (Emmi et al. 2011).
	HuntDelay HuntStrategy = "delay"
	// HuntPlan lets a thread run until it waits, except where the plan says otherwise.
	HuntPlan HuntStrategy = "plan"
)

var huntStrategies = map[HuntStrategy]uint32{HuntRandom: agent.HuntRandom, HuntPCT: agent.HuntPCT, HuntDelay: agent.HuntDelay, HuntPlan: agent.HuntPlan}

// number is the strategy in struct dg_hunt; 0: there is none of that name.
func (s HuntStrategy) Number() uint32 { return huntStrategies[s] }

// Hunt runs the threads of a recorded program one at a time, in an order that follows from
// these fields. The order is the same each time, as far as the program does not depend on
// anything outside of it. Nothing in it is left to chance.
type Hunt struct {
	Strategy HuntStrategy `json:"strategy"`
	// Seed is the seed of the random choices, Depth the parameter of the strategy.
	Seed  uint64 `json:"seed"`
	Depth int    `json:"depth,omitempty"`
	// Length is the approximate number of steps of a run.
	Length uint64 `json:"length,omitempty"`
	// Most, unless 0, is the number of steps after which a run ends, as it makes no progress.
	Most uint64 `json:"most,omitempty"`
	// Chance is the probability, in 65,536ths, with which HuntRandom preempts at a point of the
	// code.
	Chance int `json:"chance,omitempty"`
	// Globals: threads are also preempted where the program's own code accesses variables
	// shared by all threads, unless it was built with its own points.
	Globals bool `json:"globals,omitempty"`
	// Plan is the plan of HuntPlan.
	Plan []Decision `json:"plan,omitempty"`
	// Quiet runs leave no recording.
	Quiet bool `json:"-"`
	// Processor is the only processor that the threads run on; -1 is any.
	Processor int `json:"-"`
}

// Decision selects the thread that runs next at a step of a thread.
type Decision struct {
	// Thread gives the right to run To another thread, or keeps it.
	Thread uint32 `json:"thread"`
	// Step is the number of the thread's step, from 1. Arrivals at events, waits, and points of
	// the code are steps.
	Step uint64 `json:"step"`
	To   uint32 `json:"to"` // the thread that runs next
	// At is the kind of event that the thread was at.
	At eventlog.Kind `json:"at"`
	// Preempts: the thread could have continued.
	Preempts bool `json:"preempts,omitempty"`
}

// String describes it: "thread 2 is preempted at its step 17 (mutex) for thread 3".
func (d Decision) String() string {
	if d.To == d.Thread {
		return fmt.Sprintf("thread %d continues at its step %d (%v), before others", d.Thread, d.Step, d.At)
	}
	if d.Preempts {
		return fmt.Sprintf("thread %d is preempted at its step %d (%v) for thread %d", d.Thread, d.Step, d.At, d.To)
	}
	return fmt.Sprintf("thread %d is followed by thread %d at its step %d (%v)", d.Thread, d.To, d.Step, d.At)
}

// Hunted is the result of a Hunt.
type Hunted struct {
	// Steps counts the steps at which a thread could be chosen, Points those of them in the
	// code between events, Switches how often another thread ran next.
	Steps    uint64 `json:"steps"`
	Points   uint64 `json:"points,omitempty"`
	Switches uint64 `json:"switches"`
	// Ready is the largest number of threads that could run at one time.
	Ready int `json:"ready"`
	// Decisions are what a HuntPlan needs for the same result: the places where the run
	// differed from one without preemptions. Missing counts the decisions that did not fit.
	Decisions []Decision `json:"decisions"`
	Missing   int        `json:"missing,omitempty"`
	// Unused counts the decisions of the plan that could not be made.
	Unused int `json:"unused,omitempty"`
	// Globals says how many points Hunt.Globals added; nil: none.
	Globals *GlobalPoints `json:"global_points,omitempty"`
}

// HuntedRun is a Hunt and its result, as stored in a manifest.
type HuntedRun struct {
	Hunt
	Hunted
}

// Stuck is why no thread of a process could continue.
type Stuck string

// The reasons.
const (
	StuckCycle      Stuck = "deadlock"    // threads wait for each other's mutexes
	StuckBlocked    Stuck = "blocked"     // no waiting thread will be woken
	StuckNoProgress Stuck = "no progress" // Hunt.Most
)

// name is the name of the reason in the names of recordings.
func (s Stuck) name() string {
	if s == StuckNoProgress {
		return "no-progress"
	}
	return "deadlock"
}

// words describes it in a sentence about the program.
func (s Stuck) Words() string {
	switch s {
	case StuckCycle:
		return "deadlocked: threads wait for each other's mutexes"
	case StuckNoProgress:
		return "made no progress: its threads took more steps than they may"
	}
	return "deadlocked: every thread waits for another"
}

// Check returns an error if the Hunt is invalid.
func (h *Hunt) Check() error {
	switch {
	case h.Strategy.Number() == 0:
		return fmt.Errorf("record: the strategy %q", h.Strategy)
	case h.Depth < 0 || h.Depth > 64:
		return fmt.Errorf("record: a depth of %d", h.Depth)
	case h.Chance < 0 || h.Chance > 65536:
		return fmt.Errorf("record: a chance of %d in 65536", h.Chance)
	case len(h.Plan) > agent.HuntDecisions:
		return fmt.Errorf("record: a plan of %d decisions", len(h.Plan))
	}
	return nil
}

// GlobalPoints says how many instructions access variables shared by all threads, and at how
// many of them threads can be preempted.
type GlobalPoints struct {
	// Points counts the instructions at which threads can be preempted, Of all of them.
	Points int `json:"points"`
	Of     int `json:"of"`
}
