package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"diagnose/bench/load"
)

// program is a program that is run in each way.
type program struct {
	name string
	own  bool
	// goal is the most that recording may cost, as a ratio of wall time; 0:
	// real programs have one together.
	goal float64
	// replayed is the share (of a hundred) of the work that is replayed; 0: it
	// is not.
	replayed int
	// alone: only the program's own process is replayed, and not its children.
	alone bool
	// never says why a replay may diverge from the recording.
	never string
	// checked: ThreadSanitizer and helgrind run it as well.
	checked  bool
	commands []string // that must be installed
	// job prepares a run with a share (of a hundred) of the work.
	job func(w way, share int) (job, error)
}

// worst are the own programs: source, arguments before the count, count.
var worst = []struct {
	name, source string
	arguments    []string
	count        int
	program
}{
	{"lock-own", "locks", []string{"own", "1"}, 50_000_000, program{goal: 1.5, checked: true, replayed: 100}},
	{"lock-own/4", "locks", []string{"own", "4"}, 12_500_000, program{goal: 1.5, checked: true, replayed: 100}},
	{"lock-contended/2", "locks", []string{"contended", "2"}, 5_000_000, program{goal: 2.5, checked: true, replayed: 5}},
	{"lock-contended/4", "locks", []string{"contended", "4"}, 2_500_000, program{goal: 2.5, checked: true, replayed: 5}},
	{"condition", "locks", []string{"cond", "2"}, 100_000, program{checked: true, replayed: 25}},
	{"read", "calls", []string{"read"}, 1_000_000, program{goal: 1.3, checked: true, replayed: 100}},
	{"clock", "calls", []string{"clock"}, 1_000_000, program{checked: true, replayed: 100}},
	{"pipe", "calls", []string{"pipe"}, 100_000, program{checked: true, replayed: 25}},
	{"putc", "calls", []string{"putc"}, 50_000_000, program{checked: true, replayed: 100}},
	{"putc/4", "calls", []string{"putc-threads"}, 1_000_000, program{checked: true, replayed: 10}},
	{"malloc/4", "tasks", []string{"malloc"}, 2_000_000, program{checked: true, replayed: 20}},
	{"create", "tasks", []string{"create"}, 2_000, program{checked: true, replayed: 100}},
	{"fork", "tasks", []string{"fork"}, 200, program{checked: true, replayed: 100, alone: true}},
	{"spawn", "tasks", []string{"spawn"}, 200, program{replayed: 100, alone: true}},
	{"fork-exit", "tasks", []string{"exit"}, 1_000, program{goal: 10, replayed: 100, alone: true}},
	{"fork-exit/32", "tasks", []string{"exit-threads"}, 1_000, program{goal: 10, replayed: 100, alone: true}},
	{"fork-exit, 256 MB", "tasks", []string{"exit-heap"}, 300, program{goal: 10, replayed: 100, alone: true}},
	// ThreadSanitizer keeps signals back until a thread blocks, which this one
	// never does.
	{"signal", "tasks", []string{"signal"}, 1_000, program{replayed: 20}},
}

func own(s settings) []program {
	var programs []program
	for _, w := range worst {
		p := w.program
		p.name, p.own = w.name, true
		p.job = func(way way, share int) (job, error) {
			target := filepath.Join(s.dir, w.source)
			var flags []string
			if way.build != "" {
				target += "." + way.name
				flags = append(flags, way.build)
			}
			err := load.Compile("gcc", filepath.Join("bench/record/programs", w.source+".c"), target, flags...)
			count := max(1, w.count*share/100*s.share/100)
			return job{argv: append(append([]string{target}, w.arguments...), strconv.Itoa(count)), dir: s.dir}, err
		}
		programs = append(programs, p)
	}
	return programs
}

// selected are the programs that the command line asks for; what this machine
// lacks is left out and said to be.
func selected(s settings) ([]program, error) {
	var all []program
	if s.programs != "real" {
		all = append(all, own(s)...)
	}
	if s.programs != "own" {
		all = append(all, real(s.dir)...)
	}
	for _, o := range s.only {
		if !slices.ContainsFunc(all, func(p program) bool { return p.name == o }) {
			return nil, fmt.Errorf("no program is called %q", o)
		}
	}
	return slices.DeleteFunc(all, func(p program) bool {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			return true
		}
		for _, c := range p.commands {
			if _, err := exec.LookPath(c); err != nil {
				fmt.Fprintf(os.Stderr, "bench/record: %s is left out: %v\n", p.name, err)
				return true
			}
		}
		return false
	}), nil
}
