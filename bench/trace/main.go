// Command trace measures the cost of tracing accesses: hits per second of each back end compared
// with gdb's `watch` with commands, on the same program; a pass without hits compared with a plain
// replay; and forty suspects compared with one replay. It prints Markdown tables.
//
//	go run ./bench/trace
//	go run ./bench/trace -runs 3 -hits 20000
//
// All of them run in turn, and ratios are those within a round, so that drift of the machine's
// speed does not affect them. In addition to the elapsed time there is the processor time of all
// processes, which counts if other programs use the machine, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"diagnose/bench/load"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
	"diagnose/staticscan"
	"diagnose/watchtrace"
)

type settings struct {
	runs, hits, gdbHits int
	diagnose, dir       string
}

func main() {
	recorder.Init()
	var s settings
	flag.IntVar(&s.runs, "runs", 5, "rounds in which everything runs once")
	flag.IntVar(&s.hits, "hits", 50000, "accesses to be traced")
	flag.IntVar(&s.gdbHits, "gdb-hits", 2000, "of them those that gdb is given")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command that records")
	flag.StringVar(&s.dir, "work", "bench/work/trace", "directory for programs and recordings")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/trace:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("%d processors, %d interleaved rounds; medians ± half the distance of the quartiles.\n\n", runtime.NumCPU(), s.runs)
	if err := rates(ctx, &s); err != nil {
		return err
	}
	return passes(ctx, &s)
}

// subject is a recorded program.
type subject struct {
	exe  string
	rec  *record.Recording
	core *image.Process
}

func (s *settings) record(ctx context.Context, name string, args ...string) (*subject, error) {
	exe, err := filepath.Abs(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	dir, err := load.RecordPassed(ctx, s.diagnose, filepath.Join("bench/trace/programs", name+".c"), exe, args...)
	if err != nil {
		return nil, err
	}
	x := &subject{exe: exe}
	if x.rec, err = record.Open(dir); err != nil {
		return nil, err
	}
	x.core, err = image.OpenCore(filepath.Join(dir, record.CoreName), image.Options{})
	return x, err
}

func (x *subject) symbol(name string) (evidence.Addr, error) {
	s, found := x.core.SymbolNamed(name)
	if !found {
		return 0, fmt.Errorf("%s has no symbol %s", x.exe, name)
	}
	return s.Addr, nil
}

// cost is what something took, and what all processes computed for it, in
// seconds.
type cost struct{ time, processor float64 }

func (c cost) less(d cost, hits int) cost {
	return cost{(c.time - d.time) / float64(hits), (c.processor - d.processor) / float64(hits)}
}

func measure(do func() error) (cost, error) {
	before, started := load.ProcessorTime(), time.Now()
	err := do()
	return cost{time.Since(started).Seconds(), load.ProcessorTime() - before}, err
}

// replayed is what a replay with watches costs.
func (x *subject) replayed(ctx context.Context, backend replay.Backend, watches []replay.Watch, want uint64) (cost, error) {
	o := replay.WatchRequest{Common: replay.Common{Timing: record.TimingEager}, Watching: replay.Watching{Watches: watches, Backend: backend}}
	if backend == replay.BackendProbe {
		var ranges []staticscan.Range
		for _, w := range watches {
			ranges = append(ranges, staticscan.Range{Addr: w.Addr, Size: w.Size})
		}
		const most = 1000
		o.Probes, _ = staticscan.Accessors(x.core, ranges, most)
	}
	var r *replay.Result
	took, err := measure(func() (err error) {
		r, err = replay.Run(ctx, x.rec, o)
		return err
	})
	if err == nil && (r.Hits < want || r.Lost > 0) {
		err = fmt.Errorf("%s: %d hits, %d lost, want %d", backend, r.Hits, r.Lost, want)
	}
	return took, err
}

// gdb has gdb stop at each write and continue by its commands.
func (x *subject) gdb(ctx context.Context, hits int) (cost, error) {
	script := "set pagination off\nset confirm off\nbreak main\nrun\nwatch counter\ncommands\nsilent\nprint counter\ncontinue\nend\ncontinue\n"
	file := x.exe + ".gdb"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return cost{}, err
	}
	cmd := exec.CommandContext(ctx, "gdb", "-nx", "-batch", "-x", file, "--args", x.exe, strconv.Itoa(hits))
	var out []byte
	took, err := measure(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if n := strings.Count(string(out), "\n$"); err == nil && n < hits {
		err = fmt.Errorf("%d of %d stops were seen", n, hits)
	}
	if err != nil {
		return cost{}, fmt.Errorf("gdb: %w\n%s", err, load.Tail(string(out)))
	}
	return took, nil
}

const (
	gdbWay   = "gdb, watch with commands"
	probeWay = "probe, reads and writes"
	// probeFactor: fewer hits by probes than so many times more than others have
	// are done before anything can be measured.
	probeFactor = 100
)

// probed is a round of what hits by probes cost.
func (s *settings) probed(ctx context.Context, x *subject, counter evidence.Addr, hits map[string][]cost) error {
	plain, err := x.replayed(ctx, "", nil, 0)
	if err != nil {
		return err
	}
	most := s.hits * probeFactor
	took, err := x.replayed(ctx, replay.BackendProbe, []replay.Watch{{Addr: counter, Size: 8}}, uint64(most))
	if err != nil {
		return err
	}
	hits[probeWay] = append(hits[probeWay], took.less(plain, most))
	return nil
}

// rates are hits per second.
func rates(ctx context.Context, s *settings) error {
	x, err := s.record(ctx, "hot", strconv.Itoa(s.hits))
	if err != nil {
		return err
	}
	counter, err := x.symbol("counter")
	if err != nil {
		return err
	}
	ways := map[string]replay.Watch{
		"ptrace, reads and writes": {Addr: counter, Size: 8}, "ptrace, writes": {Addr: counter, Size: 8, Writes: true},
		"bpf, reads and writes": {Addr: counter, Size: 8}, "bpf, writes": {Addr: counter, Size: 8, Writes: true},
	}
	many, err := s.record(ctx, "hot", strconv.Itoa(s.hits*probeFactor))
	if err != nil {
		return err
	}
	hits := map[string][]cost{} // of one, by way
	for range s.runs {
		plain, err := x.replayed(ctx, "", nil, 0)
		if err != nil {
			return err
		}
		for _, way := range sortedKeys(ways) {
			backend, _, _ := strings.Cut(way, ",")
			took, err := x.replayed(ctx, replay.Backend(backend), []replay.Watch{ways[way]}, uint64(s.hits))
			var cannot *replay.UnsupportedError
			if errors.As(err, &cannot) {
				fmt.Fprintln(os.Stderr, "bench/trace:", err)
				continue
			}
			if err != nil {
				return err
			}
			hits[way] = append(hits[way], took.less(plain, s.hits))
		}
		if err := s.probed(ctx, many, counter, hits); err != nil {
			return err
		}
		none, err := x.gdb(ctx, 0)
		if err != nil {
			return err
		}
		took, err := x.gdb(ctx, s.gdbHits)
		if err != nil {
			return err
		}
		hits[gdbWay] = append(hits[gdbWay], took.less(none, s.gdbHits))
	}
	fmt.Println("| Way | Hits per second | One hit, us | Times gdb's rate | Processor time of one, us | Less than gdb's, times |\n| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, way := range append(sortedKeys(ways), probeWay, gdbWay) {
		if len(hits[way]) == 0 {
			continue
		}
		var times, processors, rates, savings []float64
		for i, c := range hits[way] {
			times, processors = append(times, c.time), append(processors, c.processor)
			rates, savings = append(rates, hits[gdbWay][i].time/c.time), append(savings, hits[gdbWay][i].processor/c.processor)
		}
		hit, _ := quartiles(times)
		processor, _ := quartiles(processors)
		rate, spread := quartiles(rates)
		saving, spreadSaving := quartiles(savings)
		fmt.Printf("| %s | %.0f | %.1f | %.1f ± %.1f | %.1f | %.1f ± %.1f |\n", way, 1/hit, 1e6*hit, rate, spread, 1e6*processor, saving, spreadSaving)
	}
	fmt.Println()
	return nil
}

// passes are whole traces beside plain replays.
func passes(ctx context.Context, s *settings) error {
	x, err := s.record(ctx, "quiet")
	if err != nil {
		return err
	}
	never, err := x.symbol("never")
	if err != nil {
		return err
	}
	targets, err := watchtrace.Resolve(x.core, "suspects")
	if err != nil {
		return err
	}
	var plains, without, suspects, probed, computedWithout, computedSuspects, computedProbed []float64
	for range s.runs {
		plain, err := x.replayed(ctx, "", nil, 0)
		if err != nil {
			return err
		}
		quiet, err := x.replayed(ctx, "", []replay.Watch{{Addr: never, Size: 8}}, 0)
		if err != nil {
			return err
		}
		var log *evidence.AccessLog
		all, err := measure(func() (err error) {
			log, err = watchtrace.Trace(ctx, x.rec, targets, watchtrace.Options{})
			return err
		})
		if err != nil {
			return err
		}
		if log.Hits < 30 || log.Passes < 10 || log.Lost > 0 {
			return fmt.Errorf("%d hits in %d passes", log.Hits, log.Passes)
		}
		one, err := measure(func() (err error) {
			log, err = watchtrace.Trace(ctx, x.rec, targets, watchtrace.Options{Backend: replay.BackendProbe})
			return err
		})
		if err != nil {
			return err
		}
		if log.Hits < 30 || log.Passes != 1 {
			return fmt.Errorf("%d hits in %d passes", log.Hits, log.Passes)
		}
		probed, computedProbed = append(probed, one.time/plain.time), append(computedProbed, one.processor/plain.processor)
		plains = append(plains, plain.time)
		without, computedWithout = append(without, quiet.time/plain.time), append(computedWithout, quiet.processor/plain.processor)
		suspects, computedSuspects = append(suspects, all.time/plain.time), append(computedSuspects, all.processor/plain.processor)
	}
	fmt.Println("| What | Times a plain replay | Goal | Times its processor time |\n| --- | ---: | ---: | ---: |")
	for _, row := range []struct {
		what             string
		ratios, computed []float64
		goal             string
	}{{"a pass without hits", without, computedWithout, "1.1"}, {"forty suspects, ten passes", suspects, computedSuspects, "6"},
		{"forty suspects, one pass by probes", probed, computedProbed, ""}} {
		middle, spread := quartiles(row.ratios)
		computed, computedSpread := quartiles(row.computed)
		fmt.Printf("| %s | %.2f ± %.2f | %s | %.2f ± %.2f |\n", row.what, middle, spread, row.goal, computed, computedSpread)
	}
	middle, _ := quartiles(plains)
	fmt.Printf("\nThe plain replay took %.2f s.\n", middle)
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// quartiles are the median, and half the distance of the quartiles.
func quartiles(values []float64) (middle, spread float64) {
	v := slices.Sorted(slices.Values(values))
	return v[len(v)/2], (v[len(v)*3/4] - v[len(v)/4]) / 2
}
