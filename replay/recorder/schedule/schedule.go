// Package schedule gives a hunted process the schedule that it is to run with, and reads which one
// it had.
package schedule

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
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/sites"
)

// StuckReasons are what the engine says of a process none of whose threads can continue.
var StuckReasons = map[uint64]record.Stuck{agent.StuckCycle: record.StuckCycle, agent.StuckBlocked: record.StuckBlocked, agent.StuckEvents: record.StuckNoProgress}

// start is the start time of a hunted program's clock. Any time would do, as long as it is
// the same each time.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Random are the random bytes of every hunted process.
var Random = [16]byte([]byte("a schedule's own"))

// encode encodes a Hunt for the process.
func encode(h *record.Hunt) ([]byte, error) {
	r := agent.RawHunt{Strategy: h.Strategy.Number(), Depth: uint32(h.Depth), Seed: h.Seed, Length: h.Length, Most: h.Most,
		Clock: uint64(start.UnixNano()), Chance: uint32(h.Chance), Processor: int32(h.Processor), Planned: uint32(len(h.Plan))}
	if h.Quiet {
		r.Quiet = 1
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, &r); err != nil {
		return nil, err
	}
	b.Write(make([]byte, agent.HuntPlanAt-b.Len()))
	plan := slices.Clone(h.Plan)
	slices.SortFunc(plan, func(a, b record.Decision) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Step, b.Step))
	})
	for _, d := range plan {
		if err := binary.Write(&b, binary.LittleEndian, agent.RawDecision{Thread: d.Thread, To: d.To, Step: d.Step}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// Map maps memory for a Hunt in a process that starts, and fills it.
func Map(h *record.Hunt, tid int, memory *ptrace.Memory) error {
	raw, err := encode(h)
	if err != nil {
		return err
	}
	return place(raw, tid, memory)
}

// MapTurns maps memory for turns in a process that starts, and fills it.
func MapTurns(turns *record.Turns, tid int, memory *ptrace.Memory) error {
	var b bytes.Buffer
	r := agent.RawHunt{Strategy: agent.HuntTurns, Seed: turns.Seed, Processor: -1}
	if err := binary.Write(&b, binary.LittleEndian, &r); err != nil {
		return err
	}
	return place(b.Bytes(), tid, memory)
}

// place maps the engine's memory for a struct dg_hunt, which raw begins with.
func place(raw []byte, tid int, memory *ptrace.Memory) error {
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

// Replace gives another Hunt to a process that was already given one. The engine's own data there
// is not changed.
func Replace(h *record.Hunt, memory *ptrace.Memory) error {
	raw, err := encode(h)
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

// Read reads the result of a process so far.
func Read(memory *ptrace.Memory) (*record.Hunted, error) {
	r, err := sites.ReadHunt(memory)
	if err != nil {
		return nil, err
	}
	h := &record.Hunted{Steps: r.Steps, Points: r.Points, Switches: r.Switches, Ready: int(r.MostReady), Missing: int(r.Missing), Unused: int(r.Unused)}
	made := make([]agent.RawDecision, min(r.Made, agent.HuntDecisions))
	p := make([]byte, binary.Size(made))
	if _, err := memory.ReadAt(p, agent.EngineHunt+agent.HuntMadeAt); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	if _, err := binary.Decode(p, binary.LittleEndian, made); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	h.Decisions = make([]record.Decision, len(made))
	for i, d := range made {
		h.Decisions[i] = record.Decision{Thread: d.Thread, Step: d.Step, To: d.To, At: eventlog.Kind(d.At), Preempts: d.Flags&agent.DecisionPreempts != 0}
	}
	return h, nil
}

// ShareProcessor binds the calling thread, which ends with the run, to the processor of the program's
// threads: one of those runs at a time, and none while the tracer examines the process.
func ShareProcessor(h *record.Hunt) {
	if h.Processor < 0 {
		return
	}
	var set unix.CPUSet
	set.Set(h.Processor)
	unix.SchedSetaffinity(0, &set) // without it the run takes longer
}
