package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"diagnose/bench/load"
)

// program is a program that is run under every allocator.
type program struct {
	name    string
	own     bool
	threads int // that are alive at one time, for the quarantine's budget
	// commands are looked for before it is run.
	commands []string
	// job prepares a run with a share (of a hundred) of the work.
	job func(a allocator, share int) (job, error)
}

// Programs of ours are known by their threads too.
func (p program) String() string { return p.name }

// The malloc-heavy programs; all but shortlived have as many threads as they
// are told.
var sources = []string{
	"random.c", "lifo.c", "trees.c", "server.c", "queue.c", "growth.c", "medium.c", "tables.c",
	"shortlived.c", "containers.cc", "document.cc",
}

// installedOf leaves out what this machine lacks, and says so.
func installedOf(programs []program) []program {
	return slices.DeleteFunc(programs, func(p program) bool {
		for _, c := range p.commands {
			if _, err := exec.LookPath(c); err != nil {
				fmt.Fprintf(os.Stderr, "bench/heap: %s is left out: %v\n", p.name, err)
				return true
			}
		}
		return false
	})
}

// own programs do `whole` percent of their work when they are given all.
func own(dir string, whole int) []program {
	var programs []program
	for _, source := range sources {
		for _, threads := range []int{1, 4} {
			programs = append(programs, ownProgram(dir, source, threads, whole))
		}
	}
	return programs
}

func ownProgram(dir, source string, threads, whole int) program {
	extension := filepath.Ext(source)
	name := strings.TrimSuffix(source, extension)
	alive := threads
	switch {
	case name == "shortlived":
		alive = 2*threads + 1
		if threads == 1 {
			alive = 2
		}
	case threads > 1:
		alive = threads + 1
	}
	return program{
		name:    fmt.Sprintf("%s/%d", name, threads),
		own:     true,
		threads: alive,
		job: func(a allocator, share int) (job, error) {
			compiler := "gcc"
			if extension == ".cc" {
				compiler = "g++"
			}
			target := filepath.Join(dir, name)
			var flags []string
			if a.build != "" {
				target += "." + a.name
				flags = []string{a.build}
			}
			err := load.Compile(compiler, filepath.Join("bench/heap/programs", source), target, flags...)
			return job{argv: []string{target, strconv.Itoa(threads), strconv.Itoa(max(1, share*whole/100))}, dir: dir}, err
		},
	}
}

// selected are the programs that the command line asks for.
func selected(s settings) ([]program, error) {
	var all []program
	if s.programs != "real" {
		all = append(all, own(s.dir, s.share)...)
	}
	if s.programs != "own" {
		all = append(all, installedOf(real(s.dir))...)
	}
	if len(s.only) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	kept := slices.DeleteFunc(all, func(p program) bool {
		name, _, _ := strings.Cut(p.name, "/")
		for _, o := range s.only {
			if o == name || o == p.name {
				wanted[o] = true
				return false
			}
		}
		return true
	})
	for _, o := range s.only {
		if !wanted[o] {
			return nil, fmt.Errorf("no program is called %q", o)
		}
	}
	return kept, nil
}
