// Command causetime measures how long the cause of a recording takes, how many replays that needs, and how many of them are whole: with
// checkpoints and without. The programs compute for some ten seconds before they fail. It prints a Markdown table.
//
//	go run ./bench/causetime
//	go run ./bench/causetime -rounds 50 -program late
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"diagnose/bench/load"
	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

type settings struct {
	rounds            int
	program           string
	diagnose, workDir string
}

func main() {
	recorder.Init()
	var s settings
	flag.IntVar(&s.rounds, "rounds", 400, "the programs' argument: 20 to 30 ms each")
	flag.StringVar(&s.program, "program", "", "the only program")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command that records")
	flag.StringVar(&s.workDir, "work", "bench/work/causetime", "directory for programs and recordings")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/causetime:", err)
		os.Exit(1)
	}
}

func (s *settings) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Printf("%d processors, one diagnosis each. Seconds.\n\n", runtime.NumCPU())
	fmt.Println("| Program | Recorded run | Checkpoints | Diagnosis | Replays | Whole | In whole ones | In others | Cause |")
	fmt.Println("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
	for _, name := range []string{"late", "early", "threads"} {
		if s.program != "" && name != s.program {
			continue
		}
		if err := s.measure(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// measure writes the rows of a program.
func (s *settings) measure(ctx context.Context, name string) error {
	dir, err := load.Record(s.diagnose, filepath.Join("bench/causetime/programs", name+".c"), filepath.Join(s.workDir, name, name), strconv.Itoa(s.rounds))
	if err != nil {
		return err
	}
	rec, err := record.Open(dir)
	if err != nil {
		return err
	}
	times := rec.Manifest.Times
	rec.Close()
	for _, most := range []int{0, replay.MostKept} {
		inside, kept := replay.KeepCheckpoints(ctx, most)
		started := time.Now()
		c, err := driver.Crash(inside, driver.Request{Core: filepath.Join(dir, record.CoreName), Recordings: []string{dir}})
		if err != nil {
			return err
		}
		took, n := time.Since(started), kept.Counts()
		with := "none"
		if most > 0 {
			with = strconv.Itoa(n.Checkpoints)
		}
		fmt.Printf("| %s | %.1f | %s | %.1f | %d | %d | %.1f | %.1f | %s |\n", name, time.Duration(times.UserNS+times.SystemNS).Seconds(), with, took.Seconds(),
			n.Whole+n.Continued, n.Whole, n.WholeTime.Seconds(), n.ContinuedTime.Seconds(), cause(c))
	}
	return nil
}

func cause(c *evidence.Case) string {
	if c.Diagnosis == nil || len(c.Diagnosis.Causes) == 0 {
		return "none"
	}
	x := &c.Diagnosis.Causes[0]
	return fmt.Sprintf("%s, %s", x.Kind, x.Proof)
}
