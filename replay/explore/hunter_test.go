package explore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

func newHunter(t *testing.T, o recorder.Options) *recorder.Hunter {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := recorder.NewHunter(o, []*os.File{null, null, null})
	t.Cleanup(func() {
		h.Close()
		null.Close()
	})
	return h
}

// quiet makes a run without a recording.
func quiet(t *testing.T, hunter *recorder.Hunter, h record.Hunt) recorder.Result {
	t.Helper()
	h.Quiet = true
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	r, err := hunter.Run(ctx, &h)
	if err != nil {
		t.Fatal(err)
	}
	if r.Hunted == nil {
		t.Fatalf("nothing came of the hunt: %v", r.Outcome.String())
	}
	return r
}

// children returns the processes whose parent is this one, including those that have ended and
// were not waited for.
func children(t *testing.T) (list []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, parent, state := 0, 0, ""
		_, rest, _ := strings.Cut(string(text), ") ")
		fmt.Sscan(string(text), &pid)
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// Forks of a process that has loaded the program behave as a newly started program does, with
// every seed. They no longer need the program's file.
func TestHunterForks(t *testing.T) {
	for _, globals := range []bool{false, true} {
		o := optionsOf(t, huntProgram(t, "hunt/races.c"))
		hunter := newHunter(t, o)
		var hunts []record.Hunt
		var anew []recorder.Result
		add := func(h record.Hunt) recorder.Result {
			hunts, anew = append(hunts, h), append(anew, hunted(t, o, h))
			return anew[len(anew)-1]
		}
		for _, strategy := range strategies {
			for seed := range uint64(3) {
				r := add(record.Hunt{Strategy: strategy, Seed: seed, Depth: 4, Length: 200, Chance: 1000, Globals: globals, Processor: -1})
				add(record.Hunt{Strategy: record.HuntPlan, Plan: r.Hunted.Decisions, Globals: globals, Processor: -1})
			}
		}
		ids := map[int]bool{quiet(t, hunter, hunts[0]).PID: true}
		if err := os.Remove(o.Path); err != nil {
			t.Fatal(err)
		}
		for i, h := range hunts {
			r := quiet(t, hunter, h)
			if r.Outcome.Status != 7 || r.Hunted.Steps != anew[i].Hunted.Steps || !slices.Equal(r.Hunted.Decisions, anew[i].Hunted.Decisions) {
				t.Errorf("%+v: ended as %v after %d steps, again after %d", h, r.Outcome.String(), r.Hunted.Steps, anew[i].Hunted.Steps)
			}
			if g, other := r.Hunted.Globals, anew[i].Hunted.Globals; globals && (g == nil || g.Points == 0 || other == nil || *g != *other) {
				t.Errorf("%+v: points %+v, again %+v", h, g, other)
			}
			if ids[r.PID] {
				t.Errorf("two runs were process %d", r.PID)
			}
			ids[r.PID] = true
		}
		if r := quiet(t, hunter, record.Hunt{Strategy: record.HuntPlan, Globals: globals, Processor: -1}); len(r.Hunted.Decisions) != 0 {
			t.Errorf("without a plan %d decisions were made: the last one's is left", len(r.Hunted.Decisions))
		}
	}
}

// An abandoned run, and the kill of a waiting process, do not affect later runs. No process is
// left at the end.
func TestHunterGoesOn(t *testing.T) {
	before := children(t)
	hunter := newHunter(t, optionsOf(t, huntProgram(t, "hunt/livelock.c")))
	bounded := record.Hunt{Strategy: record.HuntRandom, Most: 5000, Processor: -1}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		r, err := hunter.Run(ctx, &record.Hunt{Strategy: record.HuntRandom, Quiet: true, Processor: -1})
		cancel()
		if err != nil || !r.Status.Signaled() || r.Status.Signal() != unix.SIGKILL {
			t.Fatalf("a program without an end ended as %v, %v", r.Outcome.String(), err)
		}
		first := quiet(t, hunter, bounded)
		var servers []int
		for _, pid := range children(t) {
			if !slices.Contains(before, pid) {
				servers = append(servers, pid)
			}
		}
		if len(servers) != 1 || first.Outcome.Stuck != record.StuckNoProgress {
			t.Fatalf("processes %v stand by; the run ended as %v", servers, first.Outcome.String())
		}
		if err := unix.Kill(servers[0], unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		again := quiet(t, hunter, bounded)
		if again.Outcome.Stuck != record.StuckNoProgress || !slices.Equal(again.Hunted.Decisions, first.Hunted.Decisions) {
			t.Errorf("after a kill the run ended as %v", again.Outcome.String())
		}
	}
	hunter.Close()
	if left := children(t); len(left) != len(before) {
		t.Errorf("processes %v are left, before there were %v", left, before)
	}
}

// These programs create processes, wait for the outside, continue without their first thread,
// or have threads that signals interrupt; nothing in a log orders those here.
func TestHunterPrograms(t *testing.T) {
	for _, name := range []string{"hunt/outside.c", "hunt/patient.c", "record/basic/forks.c", "record/basic/vforks.c", "record/threads/main_leaves.c", "record/sync/cancel.c", "record/sync/eintr.c", "record/threads/join.c"} {
		t.Run(name, func(t *testing.T) {
			p := huntProgram(t, name)
			hunter := newHunter(t, optionsOf(t, p, p.Args...))
			for i := range 3 {
				r := quiet(t, hunter, record.Hunt{Strategy: record.HuntRandom, Seed: uint64(i), Length: 50, Processor: -1})
				if got := recordtest.EndOf(r); got != p.Ends {
					t.Errorf("run %d ended with %s, want %s: %s", i, got, p.Ends, r.Why)
				}
			}
		})
	}
}
