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

// HuntStrategy says who runs next in a recording that hunts.
type HuntStrategy string

// The strategies.
const (
	HuntRandom HuntStrategy = "random" // any thread that is ready, by lot
	// HuntPCT runs the ready thread of the highest of random priorities; Depth-1
	// times among Length steps the running thread's becomes the lowest (Burckhardt
	// et al. 2010).
	HuntPCT HuntStrategy = "pct"
	// HuntDelay lets a thread run until it waits; Depth times among Length steps
	// the next one's turn comes (Emmi et al. 2011).
	HuntDelay HuntStrategy = "delay"
	// HuntPlan lets a thread run until it waits, but where the plan says otherwise.
	HuntPlan HuntStrategy = "plan"
)

var huntStrategies = map[HuntStrategy]uint32{HuntRandom: agent.HuntRandom, HuntPCT: agent.HuntPCT, HuntDelay: agent.HuntDelay, HuntPlan: agent.HuntPlan}

// Hunt makes a recording one whose threads run one at a time, in an order that
// follows from what is in here: the same each time, as far as the program does not
// depend on what is outside of it. Nothing that it says is left to chance.
type Hunt struct {
	Strategy HuntStrategy `json:"strategy"`
	// Seed is what the lots are drawn from, Depth the strategy's.
	Seed  uint64 `json:"seed"`
	Depth int    `json:"depth,omitempty"`
	// Length is how many steps a run has, about.
	Length uint64 `json:"length,omitempty"`
	// Most, unless 0, ends a run with more steps: it makes no progress.
	Most uint64 `json:"most,omitempty"`
	// Chance is HuntRandom's of a preemption at a point of the code, of 65,536.
	Chance int `json:"chance,omitempty"`
	// Globals: threads are preempted as well where the program's own code accesses
	// variables that all threads see, unless it was built with points of its own.
	Globals bool `json:"globals,omitempty"`
	// Plan is HuntPlan's.
	Plan []Decision `json:"plan,omitempty"`
	// Quiet runs leave no recording.
	Quiet bool `json:"-"`
	// Processor is the only one that the threads run on; -1 is any.
	Processor int `json:"-"`
}

// Decision is one of who runs next: at a step of its own a thread is followed by
// another.
type Decision struct {
	// Thread gives the right to run To another, or keeps it.
	Thread uint32 `json:"thread"`
	// Step is the thread's, from 1: of its arrivals at events, waits, and points of
	// the code.
	Step uint64 `json:"step"`
	To   uint32 `json:"to"` // the thread that runs next
	// At is what the thread stood at.
	At Kind `json:"at"`
	// Preempts: the thread could have gone on.
	Preempts bool `json:"preempts,omitempty"`
}

// String says it in words: "thread 2 is preempted at mutex, its step 17, for thread 3".
func (d Decision) String() string {
	if d.To == d.Thread {
		return fmt.Sprintf("thread %d goes on at its step %d (%v), before others", d.Thread, d.Step, d.At)
	}
	if d.Preempts {
		return fmt.Sprintf("thread %d is preempted at its step %d (%v) for thread %d", d.Thread, d.Step, d.At, d.To)
	}
	return fmt.Sprintf("thread %d is followed by thread %d at its step %d (%v)", d.Thread, d.To, d.Step, d.At)
}

// Hunted is what came of a Hunt.
type Hunted struct {
	// Steps are all at which somebody could be chosen, Points those of them in the
	// code between events, Switches how often another thread went on.
	Steps    uint64 `json:"steps"`
	Points   uint64 `json:"points,omitempty"`
	Switches uint64 `json:"switches"`
	// Ready is how many threads could go on at one time, at most.
	Ready int `json:"ready"`
	// Decisions are what a HuntPlan needs to come to the same: where the run differed
	// from one without preemptions. Missing more were made than there was room for.
	Decisions []Decision `json:"decisions"`
	Missing   int        `json:"missing,omitempty"`
	// Unused decisions of the plan were not to be had.
	Unused int `json:"unused,omitempty"`
	// Globals says of Hunt.Globals how much of the code it is; nil: none.
	Globals *GlobalPoints `json:"global_points,omitempty"`
}

// HuntedRun is a Hunt and what came of it, as a manifest has it.
type HuntedRun struct {
	Hunt
	Hunted
}

// Stuck is why no thread of a process could go on.
type Stuck string

// The reasons.
const (
	StuckCycle      Stuck = "deadlock"    // threads wait for each other's mutexes
	StuckBlocked    Stuck = "blocked"     // all wait for what nobody does
	StuckNoProgress Stuck = "no progress" // Hunt.Most
)

var stuckReasons = map[uint64]Stuck{agent.StuckCycle: StuckCycle, agent.StuckBlocked: StuckBlocked, agent.StuckEvents: StuckNoProgress}

// name is what a recording is called by.
func (s Stuck) name() string {
	if s == StuckNoProgress {
		return "no-progress"
	}
	return "deadlock"
}

// words says it in a sentence about the program.
func (s Stuck) words() string {
	switch s {
	case StuckCycle:
		return "came to a deadlock: threads wait for each other's mutexes"
	case StuckNoProgress:
		return "made no progress: its threads took more steps than they may"
	}
	return "came to a deadlock: every thread waits for another"
}

// huntStart is what a hunted program's clock says first: any time would do, but the
// same each time.
var huntStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// huntRandom are the random bytes of every hunted process.
var huntRandom = [16]byte([]byte("a schedule's own"))

// Check reports what a Hunt must not say.
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

// raw is what the process is told.
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

// begin makes room for it in a process that starts, and fills it.
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

// tell has a process that was told of another Hunt follow this one. What the engine
// has written beside it stays.
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

// readHunted is what a process has come to so far.
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
