// Command turns measures recordings whose threads take turns (`diagnose record --races=turns`). It prints Markdown.
//
//	go run ./bench/turns                      how often programs with races fail: by themselves, recorded, in turns
//	go run ./bench/turns -only crasher,apache
//	go run ./bench/turns -cost                what it costs, beside one processor, and how long replays take
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/replay/recorder"
)

type settings struct {
	runs int
	cost bool
	only []string
	dir  string
}

func main() {
	recorder.Init()
	var s settings
	var only string
	flag.IntVar(&s.runs, "runs", 0, "runs of each program each way; 0: 100 for the rates of failures, 5 for the cost")
	flag.BoolVar(&s.cost, "cost", false, "measure the cost, not the rates of failures")
	flag.StringVar(&only, "only", "", "comma-separated programs")
	flag.StringVar(&s.dir, "work", "bench/work/turns", "directory for programs and recordings")
	flag.Parse()
	s.only = strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.measure(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/turns:", err)
		os.Exit(1)
	}
}

func (s *settings) measure(ctx context.Context) error {
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	library, err := agent.RecordLibrary(ctx)
	if err != nil {
		return err
	}
	restore, err := silence()
	if err != nil {
		return err
	}
	defer restore()
	x := &meter{library: library, out: filepath.Join(s.dir, "recordings")}
	if s.cost {
		return s.costs(ctx, x)
	}
	return s.rates(ctx, x)
}

// measures reports whether a program is one of those that are wanted.
func (s *settings) measures(program string) bool {
	return len(s.only) == 0 || slices.Contains(s.only, program)
}

// meter runs programs, and records them with a library in a directory.
type meter struct {
	library, out string
}

// report is the standard output of this process, also while the recorded programs have another one.
var report = os.Stdout

// silence gives the programs that are recorded no output.
func silence() (restore func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	out, failures := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = null, null
	return func() {
		os.Stdout, os.Stderr = out, failures
		null.Close()
	}, nil
}
