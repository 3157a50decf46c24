package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/bench/load"
	"diagnose/replay/record"
)

// pair is one round: a way's run and the program by itself on the same work.
type pair struct{ it, native sample }

// result is one program, all ways.
type result struct {
	program program
	native  []sample // of the whole work
	pairs   map[string][]pair
	failed  map[string]error
	log     logged
}

// logged is what one recording has.
type logged struct {
	processes int
	events    uint64
	bytes     int64
	seconds   float64
}

// The ways to run a program; what a replay is compared with is pinned.
const (
	recorded = "recorded"
	heap     = "heap"
	tsan     = "tsan"
	helgrind = "helgrind"
	replayed = "replay"
)

func (l *launcher) ways(checked bool) []way {
	ways := []way{
		{name: recorded, wrapper: []string{l.diagnose, "record", "-o", l.recordings(), "--"}, share: 100},
		{name: heap, wrapper: []string{l.diagnose, "run", "--"}, share: 100},
	}
	if checked {
		ways = append(ways, way{name: tsan, build: "-fsanitize=thread", share: 10},
			way{name: helgrind, wrapper: []string{"valgrind", "--tool=helgrind", "--quiet"}, share: 2})
	}
	return ways
}

func (l *launcher) recordings() string { return filepath.Join(l.dir, "recordings") }

// compare runs a program in all ways in turn, and then replays it.
func compare(l *launcher, p program, s settings) (*result, error) {
	r := &result{program: p, pairs: map[string][]pair{}, failed: map[string]error{}}
	ways := l.ways(p.checked)
	whole := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w.share < 100 })
	if err := r.rounds(l, whole, 100, s.runs); err != nil {
		return nil, err
	}
	// Tools that are many times slower do less, once.
	for _, w := range ways[len(whole):] {
		if err := r.rounds(l, []way{w}, w.share, 1); err != nil {
			return nil, err
		}
	}
	if p.replayed > 0 {
		if err := r.replay(l, min(s.runs, 3)); err != nil {
			r.failed[replayed] = err
			delete(r.pairs, replayed)
		}
	}
	return r, nil
}

// rounds runs each way once a round, and the program by itself in turn with
// them, after a run that is not counted.
func (r *result) rounds(l *launcher, group []way, share, rounds int) error {
	native := way{name: "native", share: share}
	if _, err := r.measure(l, native, share); err != nil {
		return err
	}
	turn := append([]way{native}, group...)
	for range rounds {
		round := map[string]sample{}
		for _, w := range turn {
			if r.failed[w.name] != nil {
				continue
			}
			s, err := r.measure(l, w, share)
			if err != nil && w.name == native.name {
				return err
			}
			if err != nil {
				r.failed[w.name] = err
				continue
			}
			round[w.name] = s
		}
		if share == 100 {
			r.native = append(r.native, round[native.name])
		}
		for _, w := range group {
			if s, ok := round[w.name]; ok {
				r.pairs[w.name] = append(r.pairs[w.name], pair{s, round[native.name]})
			}
		}
		// Another one goes first, so that no one always follows the same.
		turn = append(turn[1:], turn[0])
	}
	return nil
}

func (r *result) measure(l *launcher, w way, share int) (sample, error) {
	j, err := r.program.job(w, share)
	if err != nil {
		return sample{}, err
	}
	s, err := l.launch(j, w)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", w.name, err)
	}
	if w.name != recorded {
		return s, nil
	}
	// A program that was not recorded costs nothing.
	defer os.RemoveAll(l.recordings())
	if kept, _ := filepath.Glob(filepath.Join(l.recordings(), "*")); len(kept) == 0 && !strings.Contains(s.messages, "its recording was dropped") {
		return sample{}, fmt.Errorf("it was not recorded: %s", load.Tail(s.messages))
	}
	return s, nil
}

// replay keeps a recording and replays it, in turn with the program by itself on one processor.
func (r *result) replay(l *launcher, rounds int) error {
	defer os.RemoveAll(l.recordings())
	w := way{name: recorded, wrapper: []string{l.diagnose, "record", "--all", "-o", l.recordings(), "--"}}
	j, err := r.program.job(w, r.program.replayed)
	if err != nil {
		return err
	}
	s, err := l.launch(j, w)
	if err != nil {
		return fmt.Errorf("record --all: %w", err)
	}
	found, _ := filepath.Glob(filepath.Join(l.recordings(), "*", record.ManifestName))
	if len(found) != 1 {
		return fmt.Errorf("record --all left %d recordings: %s", len(found), load.Tail(s.messages))
	}
	tree, err := r.describe(filepath.Dir(found[0]))
	if err != nil {
		return err
	}
	r.log.seconds = s.wall * s.requests
	if r.program.alone {
		tree = tree[:1]
	}
	for range rounds {
		again, err := r.replayTree(l, tree)
		if err != nil {
			return err
		}
		again.wall /= s.requests
		single := way{name: "one processor", wrapper: []string{"taskset", "-c", "0"}}
		native, err := r.measure(l, single, r.program.replayed)
		if err != nil {
			return err
		}
		r.pairs[replayed] = append(r.pairs[replayed], pair{again, native})
	}
	return nil
}

// describe takes what the log has of a recording and of its children; their
// directories are returned, its own first.
func (r *result) describe(dir string) ([]string, error) {
	rec, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	summary, err := rec.Log.Summarize()
	if err != nil {
		return nil, err
	}
	r.log.processes++
	r.log.events += summary.Events
	for _, t := range summary.Threads {
		r.log.bytes += t.Bytes
	}
	tree := []string{dir}
	for _, c := range rec.Manifest.Children {
		below, err := r.describe(filepath.Join(dir, filepath.FromSlash(c.Path)))
		if err != nil {
			return nil, err
		}
		tree = append(tree, below...)
	}
	return tree, nil
}

// replayTimeout ends a replay that does not end by itself.
const replayTimeout = time.Minute

// replayTree replays one recording after the other.
func (r *result) replayTree(l *launcher, tree []string) (sample, error) {
	start := time.Now()
	for _, dir := range tree {
		ctx, cancel := context.WithTimeout(context.Background(), replayTimeout)
		cmd := exec.CommandContext(ctx, l.diagnose, "replay", "--wait", "15s", dir)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the replayed process goes with it
		cmd.WaitDelay = 5 * time.Second
		cmd.Env = l.environment(l.dir)
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			return sample{}, fmt.Errorf("replay: %w: %s", err, load.Tail(string(out)))
		}
	}
	return sample{wall: time.Since(start).Seconds()}, nil
}

// ratio is the median of the ratios within a round, and half the distance of
// their quartiles. ok is false if the way failed or had no part in it.
func (r *result) ratio(way string, of func(sample) float64) (median, spread float64, ok bool) {
	if r.failed[way] != nil || len(r.pairs[way]) == 0 {
		return 0, 0, false
	}
	var ratios []float64
	for _, p := range r.pairs[way] {
		ratios = append(ratios, of(p.it)/of(p.native))
	}
	median, spread = load.Summary(ratios)
	return median, spread, true
}

// progress is one line for a user that waits.
func (r *result) progress() string {
	line := fmt.Sprintf("%-18s", r.program.name)
	for _, way := range []string{recorded, heap, tsan, helgrind, replayed} {
		if v, _, ok := r.ratio(way, wall); ok {
			line += fmt.Sprintf(" %s %.2f", way, v)
		}
	}
	for name, err := range r.failed {
		line += fmt.Sprintf("\n    %s failed: %s", name, strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	return line
}
