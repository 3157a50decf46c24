// Command schedule measures hunting: schedules per second of a small program, and
// how many schedules it takes to find the bugs of the concurrency programs of
// internal/testdata/cause, against running them again and again. It prints Markdown.
//
//	go run ./bench/schedule                 how many per second, with 1 and 2 jobs
//	go run ./bench/schedule -table FILE     the table of the programs, in a document
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"diagnose/agent"
	"diagnose/bench/load"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

type settings struct {
	seeds, tries int
	table, dir   string
	only         string
	budget       time.Duration
	alone        time.Duration
}

func main() {
	recorder.Init()
	var s settings
	flag.IntVar(&s.seeds, "seeds", 300, "schedules of the speed's measurement, and most of a hunt of the table's")
	flag.IntVar(&s.tries, "tries", 20, "hunts, each with seeds of its own, of which the table has the median")
	flag.StringVar(&s.table, "table", "", "write the table of programs to this document")
	flag.StringVar(&s.only, "only", "", "of the programs, only this one")
	flag.DurationVar(&s.budget, "budget", 20*time.Second, "time for a hunt of the table's")
	flag.DurationVar(&s.alone, "alone", 3*time.Second, "time for running a program by itself, one run after the other, at least")
	flag.StringVar(&s.dir, "work", "bench/work/schedule", "directory for programs")
	flag.Parse()
	if err := s.measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/schedule:", err)
		os.Exit(1)
	}
}

func (s *settings) measure(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if s.table != "" {
		return s.programs(ctx)
	}
	return s.speed(ctx)
}

// build compiles a program.
func (s *settings) build(source string) (string, error) {
	return s.compile(source, "")
}

// buildWithPoints compiles it with `diagnose cc`.
func (s *settings) buildWithPoints(source string) (string, error) {
	return s.compile(source, "bin/diagnose")
}

func (s *settings) compile(source, tool string) (string, error) {
	compiler := []string{"cc"}
	if filepath.Ext(source) == ".cc" {
		compiler = []string{"c++"}
	}
	name := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
	if tool != "" {
		name += "-points"
		compiler = append([]string{tool}, compiler...)
	}
	exe, err := filepath.Abs(filepath.Join(s.dir, name))
	if err != nil {
		return "", err
	}
	args := append(compiler, "-g", "-O1", "-w", "-pthread", "-o", exe, source)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", source, err, out)
	}
	return exe, nil
}

// options are of a hunt for the first failure of a program.
func (s *settings) options(ctx context.Context, exe string, args []string) (explore.HuntOptions, error) {
	library, err := agent.RecordLibrary(ctx)
	if err != nil {
		return explore.HuntOptions{}, err
	}
	return explore.HuntOptions{FirstOnly: true, Seeds: s.seeds, Budget: s.budget, Record: recorder.Options{Path: exe, Args: append([]string{exe}, args...),
		Environ: agent.RecordEnvironment(os.Environ(), library, nil), Library: library, Output: s.dir}}, nil
}

// speed is of a program of four threads with some hundred steps, that passes.
func (s *settings) speed(ctx context.Context) error {
	exe, err := s.build("internal/testdata/hunt/small.c")
	if err != nil {
		return err
	}
	fmt.Println("| Jobs | Strategy | Schedules | Steps of each | Per second | Processor time of each, ms |\n| ---: | --- | ---: | ---: | ---: | ---: |")
	for _, jobs := range []int{1, 2} {
		for _, strategy := range []record.HuntStrategy{record.HuntPCT, record.HuntRandom, record.HuntDelay} {
			o, err := s.options(ctx, exe, nil)
			if err != nil {
				return err
			}
			o.Jobs, o.Strategy, o.Budget = jobs, strategy, 10*time.Minute
			before := load.ProcessorTime()
			r, err := explore.Hunt(ctx, o)
			if err != nil {
				return err
			}
			each := (load.ProcessorTime() - before) * 1000 / float64(r.Schedules)
			fmt.Printf("| %d | %s | %d | %d | %.0f | %.2f |\n", jobs, strategy, r.Schedules, r.Steps, float64(r.Schedules)/r.Time, each)
		}
	}
	return nil
}
