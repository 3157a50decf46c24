// Command heap compares the agent as an allocator with glibc's malloc, jemalloc, mimalloc,
// tcmalloc, scudo and, on smaller work, AddressSanitizer, valgrind and Electric Fence. It runs the
// same programs under each, in turn, and prints Markdown tables of wall time, processor time and
// peak resident memory as ratios to glibc.
//
//	go run ./bench/heap                                   # everything
//	go run ./bench/heap -programs own -allocators agent,mimalloc,scudo
//	go run ./bench/heap -programs own -share 20 -allocators agent,scudo   # quick
//	go run ./bench/heap -only random/4,trees -runs 3 -allocators agent
//	go run ./bench/heap -agent /path/to/libdiagnose.so    # instead of the built one
//
// A ratio is the median of the ratios within each round, which drift of the machine's speed does
// not affect. It is followed by half the distance between their quartiles. A program fails if its
// output or its exit status differs from that under glibc. An interrupt ends the run after the
// program that is being measured, and prints the tables of the programs before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"diagnose/bench/load"
)

type settings struct {
	runs       int
	share      int
	only       []string
	allocators []string
	programs   string
	agent      string
	dir        string
}

func main() {
	var s settings
	var only, allocators string
	flag.IntVar(&s.runs, "runs", 5, "rounds in which every allocator runs each program once")
	flag.IntVar(&s.share, "share", 100, "percent of their whole work that our own programs do")
	flag.StringVar(&only, "only", "", "comma-separated programs: name, or name/threads")
	flag.StringVar(&allocators, "allocators", "", "comma-separated allocators besides glibc; all if empty")
	flag.StringVar(&s.programs, "programs", "all", "own, real or all")
	flag.StringVar(&s.agent, "agent", os.Getenv("DIAGNOSE_AGENT"), "the agent's library; built if empty")
	flag.StringVar(&s.dir, "work", "bench/work/heap", "directory for programs and inputs; kept between runs")
	flag.Parse()
	s.only, s.allocators = list(only), list(allocators)
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/heap:", err)
		os.Exit(1)
	}
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

func run(s settings) error {
	if s.runs < 1 || s.share < 1 || s.programs != "own" && s.programs != "real" && s.programs != "all" {
		return fmt.Errorf("-runs and -share are at least 1, and -programs is own, real or all")
	}
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	// The same commands as the programs are run with.
	if err := os.Setenv("PATH", load.SearchPath); err != nil {
		return err
	}
	l, err := newLauncher(s.dir)
	if err != nil {
		return err
	}
	allocators, err := installed(s)
	if err != nil {
		return err
	}
	programs, err := selected(s)
	if err != nil {
		return err
	}
	fmt.Printf("%d processors, %d interleaved rounds, %d %% of our own programs' work; ratios to glibc, medians ± half the distance of the quartiles.\n",
		runtime.NumCPU(), s.runs, s.share)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var results []*result
	for _, p := range programs {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench/heap: interrupted; these are the programs before that")
			break
		}
		r, err := compare(l, p, allocators, s.runs)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		fmt.Fprintln(os.Stderr, r.progress())
		results = append(results, r)
	}
	return report(os.Stdout, allocators, results)
}
