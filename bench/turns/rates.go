package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// rates prints how many runs of each program failed.
func (s *settings) rates(ctx context.Context, m *meter) error {
	runs := cmp.Or(s.runs, 100)
	fmt.Fprintf(report, "| Program | Runs | By itself | Events | Turns |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, p := range racyPrograms {
		if !s.measures(filepath.Base(p.name())) {
			continue
		}
		exe, err := s.build(filepath.Join("internal/testdata", p.source), strings.ReplaceAll(p.name(), "/", "-"))
		if err != nil {
			return err
		}
		failed, err := m.count(ctx, append([]string{exe}, p.args...), runs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		fmt.Fprintf(report, "| %s | %d | %d | %d | %d |\n", p.name(), runs, failed[0], failed[1], failed[2])
	}
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

// count returns how many of so many runs failed: by itself, recorded with the order of events, and in turns. The
// three are run one after the other.
func (m *meter) count(ctx context.Context, argv []string, runs int) (failed [3]int, err error) {
	for range runs {
		for i, run := range []func(context.Context, []string) (bool, error){m.alone, m.events, m.turns} {
			fails, err := run(ctx, argv)
			if err != nil {
				return failed, err
			}
			if fails {
				failed[i]++
			}
		}
	}
	return failed, nil
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
