package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
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
	At Kind `json:"at"`
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

var stuckReasons = map[uint64]Stuck{agent.StuckCycle: StuckCycle, agent.StuckBlocked: StuckBlocked, agent.StuckEvents: StuckNoProgress}

// name is the name of the reason in the names of recordings.
func (s Stuck) name() string {
	if s == StuckNoProgress {
		return "no-progress"
	}
	return "deadlock"
}

// words describes it in a sentence about the program.
func (s Stuck) words() string {
	switch s {
	case StuckCycle:
		return "deadlocked: threads wait for each other's mutexes"
	case StuckNoProgress:
		return "made no progress: its threads took more steps than they may"
	}
	return "deadlocked: every thread waits for another"
}

// huntStart is the start time of a hunted program's clock. Any time would do, as long as it is
// the same each time.
var huntStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// huntRandom are the random bytes of every hunted process.
var huntRandom = [16]byte([]byte("a schedule's own"))

// Check returns an error if the Hunt is invalid.
func (h *Hunt) Check() error {
	switch {
	case huntStrategies[h.Strategy] == 0:
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

// raw encodes the Hunt for the process.
func (h *Hunt) raw() ([]byte, error) {
	r := agent.RawHunt{Strategy: huntStrategies[h.Strategy], Depth: uint32(h.Depth), Seed: h.Seed, Length: h.Length, Most: h.Most,
		Clock: uint64(huntStart.UnixNano()), Chance: uint32(h.Chance), Processor: int32(h.Processor), Planned: uint32(len(h.Plan))}
	if h.Quiet {
		r.Quiet = 1
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, &r); err != nil {
		return nil, err
	}
	b.Write(make([]byte, agent.HuntPlanAt-b.Len()))
	plan := slices.Clone(h.Plan)
	slices.SortFunc(plan, func(a, b Decision) int { return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Step, b.Step)) })
	for _, d := range plan {
		if err := binary.Write(&b, binary.LittleEndian, agent.RawDecision{Thread: d.Thread, To: d.To, Step: d.Step}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// begin maps memory for the Hunt in a process that starts, and fills it.
func (h *Hunt) begin(tid int, memory *ptrace.Memory) error {
	raw, err := h.raw()
	if err != nil {
		return err
	}
	got, err := ptrace.SystemCall(tid, unix.SYS_MMAP, agent.EngineHunt, agent.HuntBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE, ^uint64(0), 0)
	if err != nil {
		return err
	}
	if got != agent.EngineHunt {
		return fmt.Errorf("memory for its schedule: %w", unix.Errno(-got))
	}
	_, err = memory.WriteAt(raw, agent.EngineHunt)
	return err
}

// tell gives another Hunt to a process that was already given one. The engine's own data there
// is not changed.
func (h *Hunt) tell(memory *ptrace.Memory) error {
	raw, err := h.raw()
	if err != nil {
		return err
	}
	if _, err := memory.WriteAt(raw[:unsafe.Offsetof(agent.RawHunt{}.Steps)], agent.EngineHunt); err != nil {
		return err
	}
	if plan := raw[agent.HuntPlanAt:]; len(plan) > 0 {
		_, err = memory.WriteAt(plan, agent.EngineHunt+agent.HuntPlanAt)
	}
	return err
}

func readHunt(memory *ptrace.Memory) (*agent.RawHunt, error) {
	var r agent.RawHunt
	p := make([]byte, binary.Size(&r))
	if _, err := memory.ReadAt(p, agent.EngineHunt); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	if _, err := binary.Decode(p, binary.LittleEndian, &r); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	return &r, nil
}

// readHunted reads the result of a process so far.
func readHunted(memory *ptrace.Memory) (*Hunted, error) {
	r, err := readHunt(memory)
	if err != nil {
		return nil, err
	}
	h := &Hunted{Steps: r.Steps, Points: r.Points, Switches: r.Switches, Ready: int(r.MostReady), Missing: int(r.Missing), Unused: int(r.Unused)}
	made := make([]agent.RawDecision, min(r.Made, agent.HuntDecisions))
	p := make([]byte, binary.Size(made))
	if _, err := memory.ReadAt(p, agent.EngineHunt+agent.HuntMadeAt); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	if _, err := binary.Decode(p, binary.LittleEndian, made); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	h.Decisions = make([]Decision, len(made))
	for i, d := range made {
		h.Decisions[i] = Decision{Thread: d.Thread, Step: d.Step, To: d.To, At: Kind(d.At), Preempts: d.Flags&agent.DecisionPreempts != 0}
	}
	return h, nil
}
