// Command ask measures how long `diagnose ask` takes for each of its questions, on a recording of about a second of work by two
// threads, compared with a plain replay. It prints a Markdown table.
//
//	go run ./bench/ask
//	go run ./bench/ask -runs 3
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"diagnose/bench/load"
)

type settings struct {
	runs          int
	diagnose, dir string
	rec           string
}

func main() {
	var s settings
	flag.IntVar(&s.runs, "runs", 5, "rounds in which everything runs once")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command")
	flag.StringVar(&s.dir, "work", "bench/work/ask", "directory for the program and its recording")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/ask:", err)
		os.Exit(1)
	}
}

// question is one question with its times.
type question struct {
	args    []string
	text    string
	rows    int
	replays int
	times   []time.Duration
}

func (s *settings) run() error {
	if err := s.record(); err != nil {
		return err
	}
	list := []*question{{text: "a plain replay, `diagnose replay`"}}
	for _, args := range [][]string{{"--last-write", "rounds"}, {"--writes", "sum->total"}, {"--values", "sum->total"}, {"--calls", "add"},
		{"--executed", "work.c:27"}, {"--did", "2"}, {"--holders", "sum->lock"}} {
		list = append(list, &question{args: args, text: fmt.Sprintf("`%s %s`", args[0], args[1])})
	}
	for range s.runs {
		for _, q := range list {
			if err := s.measure(q); err != nil {
				return fmt.Errorf("%s: %w", q.text, err)
			}
		}
	}
	fmt.Printf("%d processors, %d interleaved rounds; medians, and the least and the most.\n\n", runtime.NumCPU(), s.runs)
	fmt.Println("| Question | Rows | Replays | Seconds |\n| --- | ---: | ---: | --- |")
	for _, q := range list {
		slices.Sort(q.times)
		n := len(q.times)
		fmt.Printf("| %s | %d | %d | %.2f (%.2f to %.2f) |\n", q.text, q.rows, q.replays, q.times[n/2].Seconds(), q.times[0].Seconds(), q.times[n-1].Seconds())
	}
	return nil
}

// record compiles and records the program.
func (s *settings) record() (err error) {
	if s.rec, err = load.Record(s.diagnose, "bench/ask/testdata/work.c", filepath.Join(s.dir, "work")); err != nil {
		return err
	}
	return exec.Command(s.diagnose, "replay", s.rec).Run() // finds the timing of the recording
}

func (s *settings) measure(q *question) error {
	args := []string{"replay", s.rec}
	if q.args != nil {
		args = append([]string{"ask", "--recording", s.rec, "--max", "0", "--format", "json"}, q.args...)
	}
	started := time.Now()
	var out, failed bytes.Buffer
	c := exec.Command(s.diagnose, args...)
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, &failed)
	}
	q.times = append(q.times, time.Since(started))
	if q.args == nil {
		q.replays = 1
		return nil
	}
	var answer struct {
		Writes, Values, Calls, Executed, Did, Holds []json.RawMessage
		Coverage                                    struct{ Replays int }
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return err
	}
	q.replays = answer.Coverage.Replays
	q.rows = len(answer.Writes) + len(answer.Values) + len(answer.Calls) + len(answer.Executed) + len(answer.Did) + len(answer.Holds)
	return nil
}
