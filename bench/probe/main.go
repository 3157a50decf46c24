// Command probe measures how many arrivals a second `diagnose probe` answers, compared with a
// breakpoint of gdb with silent commands, and with gdb's dprintf, in the live program, and how many runs of debug code. It prints a
// Markdown table.
//
//	go run ./bench/probe
//	go run ./bench/probe -runs 3 -gdb-hits 5000
//
// All of them run in turn. The time of a run that ends at the first arrival is subtracted, so that
// starting, and reading debug information, do not count.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"diagnose/bench/load"
)

const (
	source = "internal/testdata/probe/queue.c"
	calls  = 120_000 // of mix in that program
	many   = 20_000_000
	rows   = 500_000
	copies = 3_000 // of the process with 32 MB of memory
)

type settings struct {
	runs, gdbHits int
	diagnose, dir string
	exe, rec      string
	manyRec       string // of the program with many calls
	largeRec      string // of the program with 32 MB more memory, which it writes first
	only          string
}

func main() {
	var s settings
	flag.IntVar(&s.runs, "runs", 5, "rounds in which everything runs once")
	flag.IntVar(&s.gdbHits, "gdb-hits", 5000, "arrivals that gdb is given")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command")
	flag.StringVar(&s.dir, "work", "bench/work/probe", "directory for the program and its recording")
	flag.StringVar(&s.only, "only", "", "measure only the ways whose names contain this")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/probe:", err)
		os.Exit(1)
	}
}

// way is one way to print an expression at each call.
type way struct {
	name string
	hits int
	// run ends after so many arrivals.
	run   func(hits int) error
	rates []float64
}

func (s *settings) run() error {
	if err := s.record(); err != nil {
		return err
	}
	ways := []*way{
		{name: "diagnose probe, in the process: a condition that never holds", hits: many, run: func(n int) error { return s.ask(s.manyRec, n, 0, "n + 1 == 0") }},
		{name: "diagnose probe, in the process: a condition on 3 variables", hits: many, run: func(n int) error {
			return s.ask(s.manyRec, n, 0, "mixed + jobs.len != n && seed > 0")
		}},
		{name: "diagnose probe, in the process: a value printed", hits: rows, run: func(n int) error { return s.ask(s.manyRec, n, rows, "n < 500000") }},
		{name: "diagnose probe, by questions: a value printed", hits: calls, run: func(n int) error { return s.ask(s.rec, n, calls, "n + 0.5 > 0") }},
		{name: "diagnose probe, by questions: a condition that never holds", hits: calls, run: func(n int) error { return s.ask(s.rec, n, 0, "n + 0.5 < 0") }},
		{name: "diagnose probe, by questions: the results of calls printed", hits: calls, run: s.returns},
		{name: "diagnose probe, by stops, on one processor: a value printed", hits: calls, run: func(n int) error {
			return s.ask(s.rec, n, calls, "n + 0.5 > 0", "taskset", "-c", "0")
		}},
		{name: "diagnose probe, by stops, on one processor: a condition that never holds", hits: calls, run: func(n int) error {
			return s.ask(s.rec, n, 0, "n + 0.5 < 0", "taskset", "-c", "0")
		}},
		{name: "debug code that adds its parameter", hits: calls, run: func(n int) error { return s.code(s.rec, n, "sum += n;") }},
		{name: "debug code that reads 3 variables of the program", hits: calls, run: func(n int) error {
			return s.code(s.rec, n, "sum += jobs.len + mixed + pushed;")
		}},
		{name: "debug code that calls a function of the program with 32 MB, in a copy for each hit", hits: copies, run: func(n int) error {
			return s.code(s.largeRec, n, "sum += weigh(n, 0.5);")
		}},
		{name: "debug code that calls it 10 times at each hit", hits: copies / 3, run: func(n int) error {
			return s.code(s.largeRec, n, "for (int i = 0; i < 10; i++) sum += weigh(n + i, 0.5);")
		}},
		{name: "gdb, breakpoint with silent commands", hits: s.gdbHits, run: func(n int) error {
			return s.gdb("set $k = 0", "break mix", "commands", "silent", `printf "%lu\n", n`, "set $k = $k + 1", fmt.Sprintf("if $k < %d", n), "continue", "end", "end", "run")
		}},
		{name: "gdb, dprintf", hits: s.gdbHits, run: func(n int) error {
			return s.gdb(`dprintf mix,"%lu\n",n`, "break mix", fmt.Sprintf("ignore 2 %d", n-1), "run")
		}},
	}
	ways = slices.DeleteFunc(ways, func(w *way) bool { return !strings.Contains(w.name, s.only) })
	for range s.runs {
		for _, w := range ways {
			if err := w.measure(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Printf("%d processors, %d interleaved rounds; medians, and the least and the most.\n\n", runtime.NumCPU(), s.runs)
	fmt.Println("| Way | Arrivals | Arrivals a second |\n| --- | --- | --- |")
	for _, w := range ways {
		slices.Sort(w.rates)
		fmt.Printf("| %s | %d | %.0f (%.0f to %.0f) |\n", w.name, w.hits, w.rates[len(w.rates)/2], w.rates[0], w.rates[len(w.rates)-1])
	}
	return nil
}

func (w *way) measure() error {
	var times [2]time.Duration
	for i, n := range []int{1, w.hits} {
		started := time.Now()
		if err := w.run(n); err != nil {
			return err
		}
		times[i] = time.Since(started)
	}
	w.rates = append(w.rates, float64(w.hits-1)/(times[1]-times[0]).Seconds())
	return nil
}

// record compiles and records the program, and one that differs in the number of calls.
func (s *settings) record() (err error) {
	s.exe = filepath.Join(s.dir, "queue")
	if s.rec, err = load.Record(s.diagnose, source, s.exe); err != nil {
		return err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if s.manyRec, err = s.changed("many", string(text), "MIXES = 120000", fmt.Sprintf("MIXES = %d", many)); err != nil {
		return err
	}
	const first = "unsigned long sum = 0;"
	if s.largeRec, err = s.changed("large", string(text), first, first+" memset(malloc(32 << 20), 1, 32 << 20);"); err != nil {
		return err
	}
	// The first replay finds the timing of a recording.
	return errors.Join(s.ask(s.rec, 1, 0, ""), s.ask(s.manyRec, 1, 0, ""), s.ask(s.largeRec, 1, 0, ""))
}

// changed records the program with one change of its text.
func (s *settings) changed(name, text, from, to string) (string, error) {
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(source))
	if err := os.WriteFile(file, []byte(strings.Replace(text, from, to, 1)), 0o600); err != nil {
		return "", err
	}
	return load.Record(s.diagnose, file, filepath.Join(dir, "queue"))
}

// ask asks for the calls of mix that a condition holds at; all of them if hits is more than 1, and the first call if not. The command is executed by
// another one, if that is set.
func (s *settings) ask(rec string, hits, rows int, condition string, by ...string) error {
	args := append(by, s.diagnose, "probe", "--recording", rec, "--on-call", "mix", "--print", "n", "--format", "csv", "--max")
	if hits > 1 {
		return rowsOf(rows, append(args, "0", "--if", condition)...)
	}
	return rowsOf(1, append(args, "1")...)
}

// returns asks for the results of the calls of mix; of the first call if hits is 1. Each call takes two arrivals.
func (s *settings) returns(hits int) error {
	args := []string{s.diagnose, "probe", "--recording", s.rec, "--on-return", "mix", "--format", "csv", "--max"}
	if hits > 1 {
		return rowsOf(calls, append(args, "0")...)
	}
	return rowsOf(1, append(args, "1")...)
}

// rowsOf executes a command that prints a table with a number of rows.
func rowsOf(rows int, args ...string) error {
	command := exec.Command(args[0], args[1:]...)
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, command.Stderr)
	}
	if lines := strings.Count(string(out), "\n") - 1; lines != rows {
		return fmt.Errorf("%d rows, want %d", lines, rows)
	}
	return nil
}

// code runs debug code at each call of mix. It prints once, at the last of the hits.
func (s *settings) code(rec string, hits int, statement string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	before, _, found := strings.Cut(string(text), "unsigned long h = n")
	if !found {
		return fmt.Errorf("%s has no function mix", source)
	}
	code := fmt.Sprintf("static unsigned long hits, sum;\nat queue.c:%d {\n%s\nif (++hits == %d) printf(\"%%lu\\n\", sum);\n}\n", 1+strings.Count(before, "\n"), statement, hits)
	file := filepath.Join(s.dir, "code.c")
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		return err
	}
	command := exec.Command(s.diagnose, "probe", "--recording", rec, "--code", file, "--max", "1", "--format", "csv")
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, command.Stderr)
	}
	if lines := strings.Count(string(out), "\n") - 1; lines < 1 {
		return fmt.Errorf("the code printed nothing")
	}
	return nil
}

// gdb runs the program until it stops.
func (s *settings) gdb(commands ...string) error {
	args := []string{"-q", "-nx", "-batch", "-ex", "set pagination off", "-ex", "set confirm off"}
	script := filepath.Join(s.dir, "commands")
	if err := os.WriteFile(script, []byte(strings.Join(append(commands, "kill"), "\n")+"\n"), 0o600); err != nil {
		return err
	}
	out, err := exec.Command("gdb", append(args, "-x", script, s.exe)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
