package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"diagnose/agent"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/launch"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder"
)

func huntProgram(t *testing.T, name string) *recordtest.Program {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("../../internal/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func optionsOf(t *testing.T, p *recordtest.Program, args ...string) recorder.Options {
	t.Helper()
	library := recordtest.Library(t)
	exe := p.Build(t)
	return recorder.Options{Path: exe, Args: append([]string{exe}, args...), Environ: agent.RecordEnvironment(os.Environ(), library, nil),
		Library: library, Output: filepath.Join(t.TempDir(), "recordings"), All: true, Warn: func(text string) { t.Log(text) }}
}

const runLimit = time.Minute

// hunted runs a program with a schedule. It skips the test where programs cannot be recorded.
func hunted(t *testing.T, o recorder.Options, h record.Hunt) recorder.Result {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	o.Hunt = &h
	r, err := recorder.RunHunted(ctx, o, []*os.File{null, null, null})
	var unsupported *launch.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Hunted == nil {
		t.Fatalf("nothing came of the hunt: %v", r.Outcome.String())
	}
	return r
}

// identical replays a recording of a hunt: eagerly, without a search.
func identical(t *testing.T, dir string) {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	r, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}, Verify: true})
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	if text := recordtest.Differences(r); text != "" {
		t.Fatalf("%s: %s", dir, text)
	}
}

// event is the part of an event that two runs of a schedule share: ids of processes and threads
// differ.
type event struct {
	thread uint32
	kind   eventlog.Kind
	site   uint64
}

func eventsOf(t *testing.T, dir string) []event {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var list []event
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, event{e.Thread, e.Kind, uint64(e.Site)})
	}
	return list
}

// apart describes where two lists of events first differ.
func apart(a, b []event) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	around := func(list []event) []event { return list[max(0, min(i-3, len(list))):min(i+4, len(list))] }
	return fmt.Sprintf("%d and %d of them, from number %d on %+v and %+v", len(a), len(b), i, around(a), around(b))
}

var strategies = []record.HuntStrategy{record.HuntPCT, record.HuntRandom, record.HuntDelay}

// The ordinary replay replays the recordings of a hunt, whatever the program does.
func TestHuntedReplays(t *testing.T) {
	for _, name := range []string{"record/sync/cond.c", "record/sync/deadlock.c", "record/sync/eintr.c", "record/sync/cancel.c", "record/sync/real.c",
		"record/sync/once.cc", "record/threads/join.c", "record/threads/streams.c", "record/threads/main_leaves.c", "record/syscalls/futexes.c", "hunt/races.c"} {
		t.Run(name, func(t *testing.T) {
			p := huntProgram(t, name)
			o := optionsOf(t, p, p.Args...)
			for i, strategy := range strategies {
				r := hunted(t, o, record.Hunt{Strategy: strategy, Seed: uint64(i) + 1, Depth: 3, Length: 100, Chance: 1000, Processor: -1})
				if got := recordtest.EndOf(r); got != p.Ends {
					t.Fatalf("%s: ended with %s, want %s: %s", strategy, got, p.Ends, r.Why)
				}
				if r.Hunted.Steps == 0 || r.Hunted.Switches == 0 {
					t.Fatalf("%s: %d steps, %d switches: there was nothing to choose", strategy, r.Hunted.Steps, r.Hunted.Switches)
				}
				identical(t, r.Dir)
			}
		})
	}
}

// The same seed gives the same order of events and the same end, though threads race. Other
// seeds give others. The decisions of a run reproduce it.
func TestHuntedAgain(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/races.c"))
	for _, strategy := range strategies {
		h := record.Hunt{Strategy: strategy, Seed: 3, Depth: 4, Length: 200, Processor: -1}
		first := hunted(t, o, h)
		events := eventsOf(t, first.Dir)
		for range 9 {
			again := hunted(t, o, h)
			if other := eventsOf(t, again.Dir); !slices.Equal(events, other) {
				t.Fatalf("%s: the same seed had another order of events: %s; it ended %s", strategy, apart(events, other), again.Outcome.String())
			}
		}
		planned := hunted(t, o, record.Hunt{Strategy: record.HuntPlan, Plan: first.Hunted.Decisions, Processor: -1})
		if !slices.Equal(events, eventsOf(t, planned.Dir)) {
			t.Errorf("%s: its decisions, as a plan, had another order of events", strategy)
		}
		if !slices.Equal(first.Hunted.Decisions, planned.Hunted.Decisions) || len(first.Hunted.Decisions) == 0 {
			t.Errorf("%s: a plan of %d decisions made %d", strategy, len(first.Hunted.Decisions), len(planned.Hunted.Decisions))
		}
		h.Seed = 4
		if other := hunted(t, o, h); slices.Equal(events, eventsOf(t, other.Dir)) {
			t.Errorf("%s: two seeds had the same order of events", strategy)
		}
		identical(t, first.Dir)
	}
}

// The id of a process may be a number that also occurs elsewhere in its thread's control block:
// 0x7fff is the upper half of a stack's address.
func TestHuntedWithAnyID(t *testing.T) {
	const id, last = 0x7fff, "/proc/sys/kernel/ns_last_pid"
	o := optionsOf(t, huntProgram(t, "hunt/races.c"))
	for range 50 {
		if err := os.WriteFile(last, []byte(fmt.Sprint(id-1)), 0); err != nil {
			t.Skip(err)
		}
		r := hunted(t, o, record.Hunt{Strategy: record.HuntPCT, Seed: 3, Depth: 4, Length: 200, Processor: -1})
		if r.PID != id { // another process was created meanwhile
			os.RemoveAll(r.Dir)
			continue
		}
		if r.Outcome.Status != 7 {
			t.Fatalf("it ended as %v", r.Outcome.String())
		}
		identical(t, r.Dir)
		return
	}
	t.Skip("no process had the id")
}

// Sleeps take no time, and a thread that polls gets what it waits for.
func TestHuntedPatience(t *testing.T) {
	for _, name := range []string{"hunt/patient.c", "hunt/outside.c"} {
		o := optionsOf(t, huntProgram(t, name))
		for _, strategy := range append(slices.Clone(strategies), record.HuntPlan) {
			for seed := range uint64(1) {
				r := hunted(t, o, record.Hunt{Strategy: strategy, Seed: seed, Depth: 3, Length: 50, Processor: -1})
				if r.Failed {
					t.Errorf("%s, %s, seed %d: %s", name, strategy, seed, r.Why)
				} else {
					identical(t, r.Dir)
				}
			}
		}
	}
}

func TestHuntedNoProgress(t *testing.T) {
	r := hunted(t, optionsOf(t, huntProgram(t, "hunt/livelock.c")), record.Hunt{Strategy: record.HuntRandom, Most: 5000, Processor: -1})
	if r.Outcome.Stuck != record.StuckNoProgress || !r.Failed {
		t.Fatalf("ended as %v", r.Outcome.String())
	}
}

func huntOptions(o recorder.Options) explore.HuntOptions {
	o.All = false
	return explore.HuntOptions{Record: o, Budget: runLimit, Seeds: 300}
}

// A deadlock is found, minimised, and recorded as a failure that replays. So is the nearest
// schedule that passes. The number of jobs does not matter.
func TestHuntDeadlock(t *testing.T) {
	o := huntOptions(optionsOf(t, huntProgram(t, "hunt/lock_order.c")))
	var first *explore.HuntResult
	for _, jobs := range []int{1, 2} {
		o.Jobs = jobs
		r, err := explore.Hunt(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Found || r.Failure.Stuck != record.StuckCycle {
			t.Fatalf("found: %v, %+v", r.Found, r.Failure)
		}
		m := r.Minimal
		if m == nil || m.Preemptions != 1 || m.FailingDir == "" || m.PassingDir == "" {
			t.Fatalf("minimal: %+v", m)
		}
		identical(t, m.FailingDir)
		identical(t, m.PassingDir)
		if first == nil {
			first = r
		} else if r.Seed != first.Seed || r.Schedules != first.Schedules || !slices.Equal(r.Minimal.Decisions, first.Minimal.Decisions) {
			t.Errorf("with %d jobs seed %d after %d schedules, with 1 seed %d after %d", jobs, r.Seed, r.Schedules, first.Seed, first.Schedules)
		}
	}
	rec, err := record.Open(first.Minimal.FailingDir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	again, err := explore.Minimize(t.Context(), rec, o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Minimal.Decisions, first.Minimal.Decisions) {
		t.Errorf("minimised once more: %v, before %v", again.Minimal.Decisions, first.Minimal.Decisions)
	}
}

// A program's output may be its failure. A hunt that stops can be continued.
func TestHuntOutput(t *testing.T) {
	o := huntOptions(optionsOf(t, huntProgram(t, "hunt/patient.c")))
	o.FailIf, o.Seeds = regexp.MustCompile("never"), 5
	r, err := explore.Hunt(t.Context(), o)
	if err != nil || r.Found || r.Next != 6 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := o.Stopped(r); err != nil {
		t.Fatal(err)
	}
	if err := o.Resume(); err != nil || o.First != 6 || o.Length != r.Length {
		t.Fatalf("continues with seed %d, length %d: %v", o.First, o.Length, err)
	}
	races := huntOptions(optionsOf(t, huntProgram(t, "hunt/races.c")))
	races.FailIf = regexp.MustCompile("[0-9a-f]+")
	r, err = explore.Hunt(t.Context(), races)
	if err != nil || !r.Found || !r.Plain || r.Failure.Status != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A lock that a thread takes again while it is alone is counted, and the count is the replay's,
// though each release enters the engine.
func TestHuntedRelocks(t *testing.T) {
	o := optionsOf(t, huntProgram(t, "hunt/relocks.c"))
	for _, strategy := range append(slices.Clone(strategies), record.HuntPlan) {
		for seed := range uint64(3) {
			h := record.Hunt{Strategy: strategy, Seed: seed, Depth: 4, Length: 150, Globals: true, Processor: -1}
			r := hunted(t, o, h)
			if r.Failed {
				t.Fatalf("%s %d: %s", strategy, seed, r.Why)
			}
			identical(t, r.Dir)
		}
	}
}
