// Command record measures the cost of recording and replaying: the same programs by themselves,
// under `diagnose record`, and with the agent's heap alone, in turn; own programs with
// ThreadSanitizer and helgrind as well; then a recording is replayed in turn with the program on
// one processor. It prints a Markdown table of programs and one of goals.
//
//	go run ./bench/record                                 # everything
//	go run ./bench/record -programs real
//	go run ./bench/record -only lock-own,read -runs 3
//	go run ./bench/record -share 5                        # does everything work?
//	go run ./bench/record -programs first                 # the first run of a program
//
// A ratio is the median of the ratios within each round, which drift of the machine's speed does
// not affect. It is followed by half the distance between their quartiles. An interrupt ends the
// run after the program that is being measured, and prints the tables of the programs before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"diagnose/bench/load"
)

type settings struct {
	runs     int
	share    int
	only     []string
	programs string
	diagnose string
	markdown bool
	dir      string
}

func main() {
	var s settings
	var only string
	flag.IntVar(&s.runs, "runs", 5, "rounds in which every program runs once each way")
	flag.IntVar(&s.share, "share", 100, "percent of their whole work that our own programs do")
	flag.StringVar(&only, "only", "", "comma-separated programs")
	flag.StringVar(&s.programs, "programs", "all", "own, real or all; or first: what the first recording of a program costs, and later ones")
	flag.StringVar(&s.diagnose, "diagnose", "", "the command to measure; built if empty")
	flag.BoolVar(&s.markdown, "markdown", false, "print the tables alone")
	flag.StringVar(&s.dir, "work", "bench/work/record", "directory for programs, inputs and recordings; kept between runs")
	flag.Parse()
	s.only = strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/record:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	if s.runs < 1 || s.share < 1 || s.programs != "own" && s.programs != "real" && s.programs != "all" && s.programs != "first" {
		return fmt.Errorf("-runs and -share are at least 1, and -programs is own, real, all or first")
	}
	l, err := prepare(&s)
	if err != nil {
		return err
	}
	if s.programs == "first" {
		return firstRuns(l, s)
	}
	programs, err := selected(s)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if !s.markdown {
		fmt.Printf("%d processors, %d interleaved rounds, %d %% of our own programs' work; medians ± half the distance of the quartiles.\n",
			runtime.NumCPU(), s.runs, s.share)
	}
	var results []*result
	var broken error
	for _, p := range programs {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench/record: interrupted; these are the programs before that")
			break
		}
		r, err := compare(l, p, s)
		if err != nil {
			broken = fmt.Errorf("%s: %w", p.name, err)
			fmt.Fprintln(os.Stderr, "bench/record:", broken)
			continue
		}
		if !s.markdown {
			fmt.Fprintln(os.Stderr, r.progress())
		}
		results = append(results, r)
	}
	report(os.Stdout, results)
	fmt.Printf("\nrr: %s\n", l.rr())
	return broken
}

// prepare makes what all runs need. The programs are run with the same commands
// everywhere, but the tools are those of this process's PATH.
func prepare(s *settings) (*launcher, error) {
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	l := &launcher{dir: s.dir, diagnose: s.diagnose, cost: filepath.Join(s.dir, "cost")}
	if l.diagnose == "" {
		l.diagnose = filepath.Join(s.dir, "diagnose")
		if out, err := exec.Command("go", "build", "-o", l.diagnose, "./cmd/diagnose").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	} else if l.diagnose, err = filepath.Abs(l.diagnose); err != nil {
		return nil, err
	}
	if l.cache, err = os.UserCacheDir(); err != nil {
		return nil, err
	}
	if s.programs == "first" { // it removes its files
		l.cache = filepath.Join(s.dir, "cache")
	}
	if err := os.Setenv("PATH", load.SearchPath); err != nil {
		return nil, err
	}
	if err := load.Compile("gcc", "bench/record/launcher/cost.c", l.cost); err != nil {
		return nil, err
	}
	l.warm()
	return l, nil
}
