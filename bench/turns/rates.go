package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"diagnose/agent"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// racy is a program that fails in some of its runs.
type racy struct {
	source string // below internal/testdata
	args   []string
}

// racyPrograms fail in at least one of a thousand runs by themselves, on a machine with two processors.
var racyPrograms = []racy{
	{source: "schedule/apache.c"}, {source: "schedule/checked.c"}, {source: "schedule/condition.c"}, {source: "schedule/control.c"},
	{source: "schedule/crasher.c"}, {source: "schedule/deadlock.c"}, {source: "schedule/lostnode.c"}, {source: "schedule/lostsum.c"},
	{source: "schedule/otherstate.c"}, {source: "schedule/ring.c"}, {source: "schedule/userlock.c"}, {source: "schedule/value.c"},
	{source: "cases/races/04_vecrace.cpp"}, {source: "cases/races/apache45605.c"}, {source: "cases/races/crasher.c"},
	{source: "cases/races/either.c"}, {source: "cases/races/exit_race.c"}, {source: "cases/races/guarded_check.c"},
	{source: "cases/races/hash_table.c"}, {source: "cases/races/late_stop.c"}, {source: "cases/races/mysql12845.c"},
	{source: "cases/races/pop_loop.c"}, {source: "cases/races/stack_pool.c"},
	{source: "cause/search_publish.c", args: []string{"5"}}, {source: "cause/search_queue.c", args: []string{"4"}},
}

func (p *racy) name() string {
	return strings.TrimSuffix(p.source, filepath.Ext(p.source))
}

// runLimit ends a run: one that takes so long hangs, and failed.
const runLimit = 5 * time.Second

// failures counts the runs of a program that failed, of as many each way.
type failures struct {
	runs, alone, events, turns int
}

// significance is the chance below which fewer failures are no accident.
const significance = 0.05

// chance is the probability of as few failures in turns, or fewer, if the program failed as often in turns as by itself (Fisher's exact
// test, one-sided).
func (f *failures) chance() (sum float64) {
	failed := f.alone + f.turns
	for n := max(0, failed-f.runs); n <= f.turns; n++ {
		sum += math.Exp(choices(f.runs, n) + choices(f.runs, failed-n) - choices(2*f.runs, failed))
	}
	return min(sum, 1)
}

// choices is the logarithm of the number of ways to choose k of n.
func choices(n, k int) float64 {
	log := func(n int) float64 {
		v, _ := math.Lgamma(float64(n + 1))
		return v
	}
	return log(n) - log(k) - log(n-k)
}

// verdicts are whether turns reach the rate of a program by itself.
const (
	unseen    = "not seen" // the program did not fail by itself
	reached   = "reached"
	undecided = "undecided" // there were fewer failures, which may be an accident
	missed    = "missed"
)

func (f *failures) verdict() string {
	switch {
	case f.alone == 0:
		return unseen
	case f.turns >= f.alone:
		return reached
	case f.chance() >= significance:
		return undecided
	}
	return missed
}

// rates prints how many runs of each program failed.
func (s *settings) rates(ctx context.Context, m *meter) error {
	runs := cmp.Or(s.runs, 100)
	fmt.Fprintf(report, "| Program | Runs | By itself | Events | Turns | Chance | Rate by itself |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	count := make(map[string]int)
	for _, p := range racyPrograms {
		if !s.measures(filepath.Base(p.name())) {
			continue
		}
		exe, err := s.build(filepath.Join("internal/testdata", p.source), strings.ReplaceAll(p.name(), "/", "-"))
		if err != nil {
			return err
		}
		f, err := m.count(ctx, append([]string{exe}, p.args...), runs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		count[f.verdict()]++
		fmt.Fprintf(report, "| %s | %d | %d | %d | %d | %.2g | %s |\n", p.name(), f.runs, f.alone, f.events, f.turns, f.chance(), f.verdict())
	}
	fmt.Fprintf(report, "\n%d reached, %d undecided, %d missed, %d not seen.\n", count[reached], count[undecided], count[missed], count[unseen])
	return nil
}

func (s *settings) build(source, name string) (string, error) {
	compiler := map[string]string{".c": "cc", ".cpp": "c++"}[filepath.Ext(source)]
	exe := filepath.Join(s.dir, name)
	args := []string{"-g", "-O1", "-w", "-pthread", "-o", exe, source}
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", source, err, out)
	}
	return exe, nil
}

// count makes so many runs each way: by itself, recorded with the order of events, and in turns. The three are run one after the other, so
// that all have the same load.
func (m *meter) count(ctx context.Context, argv []string, runs int) (f failures, err error) {
	f.runs = runs
	for range runs {
		for _, way := range []struct {
			run    func(context.Context, []string) (bool, error)
			failed *int
		}{{m.alone, &f.alone}, {m.events, &f.events}, {m.turns, &f.turns}} {
			fails, err := way.run(ctx, argv)
			if err != nil {
				return f, err
			}
			if fails {
				*way.failed++
			}
		}
	}
	return f, nil
}

func (m *meter) alone(ctx context.Context, argv []string) (failed bool, err error) {
	limit, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	err = exec.CommandContext(limit, argv[0], argv[1:]...).Run()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, err
	}
	return err != nil, nil
}

func (m *meter) events(ctx context.Context, argv []string) (failed bool, err error) {
	return m.record(ctx, argv, nil)
}

func (m *meter) turns(ctx context.Context, argv []string) (failed bool, err error) {
	return m.record(ctx, argv, &record.Turns{Seed: rand.Uint64()})
}

func (m *meter) record(ctx context.Context, argv []string, turns *record.Turns) (failed bool, err error) {
	limit, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	defer os.RemoveAll(m.out)
	r, err := recorder.Run(limit, recorder.Options{Path: argv[0], Args: argv, Environ: agent.RecordEnvironment(os.Environ(), m.library, nil),
		Library: m.library, Output: m.out, Turns: turns})
	if ctx.Err() == nil && limit.Err() != nil {
		return true, nil // it hung
	}
	return r.Failed, err
}
