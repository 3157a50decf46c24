// Command causetime measures how long the cause of a recording takes, how many replays that needs, and how many of them are whole: with
// checkpoints, without, and with those that an earlier diagnosis has left in files. The programs compute for some ten seconds before they fail. It prints a Markdown table.
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
	files := filepath.Join(s.workDir, name, "checkpoints")
	if err := os.RemoveAll(files); err != nil {
		return err
	}
	store, err := replay.OpenStore(files, "bench")
	if err != nil {
		return err
	}
	kept := replay.UseStore(ctx, store)
	for _, x := range []diagnosis{{ctx, 0, "none"}, {ctx, replay.MostKept, "kept"}, {kept, replay.MostKept, "kept, written"}, {kept, replay.MostKept, "kept, from files"}} {
		if err := x.measure(name, dir, time.Duration(times.UserNS+times.SystemNS)); err != nil {
			return err
		}
	}
	size, err := sizeOf(files)
	fmt.Printf("\nFiles of %s: %s.\n\n", name, size)
	return err
}

// diagnosis is one with so many checkpoints.
type diagnosis struct {
	ctx  context.Context
	most int
	with string
}

// measure writes the row of a recorded run that took so long.
func (x diagnosis) measure(name, dir string, recorded time.Duration) error {
	started := time.Now()
	inside, kept := replay.KeepCheckpoints(x.ctx, x.most)
	c, err := driver.Crash(inside, driver.Request{Core: filepath.Join(dir, record.CoreName), Recordings: []string{dir}})
	n := kept.Counts()
	kept.Close()
	if err != nil {
		return err
	}
	took := time.Since(started)
	fmt.Printf("| %s | %.1f | %s: %d | %.1f | %d | %d | %.1f | %.1f | %s |\n", name, recorded.Seconds(), x.with, n.Checkpoints+n.Loaded, took.Seconds(),
		n.Whole+n.Continued, n.Whole, n.WholeTime.Seconds(), n.ContinuedTime.Seconds(), cause(c))
	return nil
}

// sizeOf describes the files of a directory.
func sizeOf(dir string) (string, error) {
	list, err := os.ReadDir(dir)
	total := int64(0)
	for _, e := range list {
		info, infoErr := e.Info()
		if infoErr != nil {
			return "", infoErr
		}
		total += info.Size()
	}
	return fmt.Sprintf("%d, %.1f MB", len(list), float64(total)/1e6), err
}

func cause(c *evidence.Case) string {
	if c.Diagnosis == nil || len(c.Diagnosis.Causes) == 0 {
		return "none"
	}
	x := &c.Diagnosis.Causes[0]
	return fmt.Sprintf("%s, %s", x.Kind, x.Proof)
}
