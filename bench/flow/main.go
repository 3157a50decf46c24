// Command flow measures the tracing of instructions: a plain replay, one whose instructions are
// left out (flow.Count), one whose instructions are executed in copies and counted one by one, and one that keeps them (flow.Record). It prints a Markdown table. The times
// are what all processes computed: other programs may use the machine, too.
//
//	go run ./bench/flow
//	go run ./bench/flow -runs 3 -program heap -rounds 100
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"

	"diagnose/bench/load"
	"diagnose/flow"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// program is a program of bench/flow/programs, with the argument that makes it some ten million instructions long.
type program struct {
	name   string
	rounds int
}

var programs = []program{{"integers", 600}, {"pointers", 2000}, {"interpreter", 700}, {"compression", 5}, {"heap", 200}}

type settings struct {
	runs, rounds      int
	most              uint64
	program           string
	profile           string
	diagnose, workDir string
}

func main() {
	recorder.Init()
	var s settings
	flag.IntVar(&s.runs, "runs", 5, "times that each program is measured")
	flag.IntVar(&s.rounds, "rounds", 0, "the programs' argument; 0: what makes ten million instructions")
	flag.Uint64Var(&s.most, "most", 200_000_000, "instructions of a trace")
	flag.StringVar(&s.program, "program", "", "the only program")
	flag.StringVar(&s.profile, "profile", "", "file for the profile of the processor")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command that records")
	flag.StringVar(&s.workDir, "work", "bench/work/flow", "directory for programs and recordings")
	flag.Parse()
	if err := run(&s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/flow:", err)
		os.Exit(1)
	}
}

func run(s *settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := os.MkdirAll(s.workDir, 0o755); err != nil {
		return err
	}
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Printf("%d processors, %d runs; medians. Millions of instructions, seconds, GB of the process that keeps the trace.\n\n", runtime.NumCPU(), s.runs)
	fmt.Println("| Program | Instructions | Plain replay | Left out | a second | Counted | a second | Kept | a second | Counted/plain | Memory |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, p := range programs {
		if s.program != "" && p.name != s.program {
			continue
		}
		if s.rounds != 0 {
			p.rounds = s.rounds
		}
		if err := s.measure(ctx, &p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// measure writes the row of a program.
func (s *settings) measure(ctx context.Context, p *program) error {
	rec, err := s.record(ctx, p)
	if err != nil {
		return err
	}
	defer rec.Close()
	var plain, left, counted, kept []float64
	instructions, memory := 0, uint64(0)
	for range s.runs {
		started := load.ProcessorTime()
		if _, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}}); err != nil {
			return err
		}
		plain = append(plain, load.ProcessorTime()-started)
		started = load.ProcessorTime()
		if _, err := flow.Count(ctx, rec, flow.Request{Most: s.most}); err != nil {
			return err
		}
		left = append(left, load.ProcessorTime()-started)
		n := 0
		started = load.ProcessorTime()
		if _, err := replay.Run(ctx, rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager}, Stepping: replay.Stepping{
			Windows: map[uint32]replay.StepWindow{1: {From: 1, To: 1 << 62}}, Ahead: true, Each: func(*replay.Executed) { n++ }}}); err != nil {
			return err
		}
		counted = append(counted, load.ProcessorTime()-started)
		runtime.GC()
		started = load.ProcessorTime()
		trace, err := flow.Record(ctx, rec, flow.Request{Most: s.most})
		if err != nil {
			return err
		}
		kept = append(kept, load.ProcessorTime()-started)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		instructions, memory = trace.Len(), max(memory, m.HeapAlloc)
		if trace.Cut || n == 0 {
			return fmt.Errorf("the trace is not whole: %d instructions, %d were counted", instructions, n)
		}
	}
	millions := float64(instructions) / 1e6
	a, _ := load.Summary(plain)
	b, _ := load.Summary(counted)
	c, _ := load.Summary(kept)
	l, _ := load.Summary(left)
	fmt.Printf("| %s | %.1f | %.2f | %.2f | %.1f | %.2f | %.1f | %.2f | %.1f | %.1f | %.2f |\n", p.name, millions, a, l, millions/(l-a), b, millions/(b-a), c, millions/(c-a), b/a, float64(memory)/1e9)
	return nil
}

// record builds and records a program.
func (s *settings) record(ctx context.Context, p *program) (*record.Recording, error) {
	dir, err := load.RecordPassed(ctx, s.diagnose, filepath.Join("bench/flow/programs", p.name+".c"), filepath.Join(s.workDir, p.name), strconv.Itoa(p.rounds))
	if err != nil {
		return nil, err
	}
	return record.Open(dir)
}
