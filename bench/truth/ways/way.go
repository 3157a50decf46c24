package ways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/source"
	"diagnose/reports"
)

// Way is how a failure is diagnosed.
type Way string

// The ways.
const (
	Core      Way = "core"
	Agent     Way = "agent"
	Recording Way = "recording"
	// Turns is a recording whose threads took turns, of programs with threads.
	Turns Way = "turns"
	// Passing is a recording, with recordings of runs that passed on other inputs.
	Passing Way = "recording+passing"
	// Kept is the recording of an earlier Recording, which is diagnosed again. It is not one of All.
	Kept Way = "kept"
)

// All are the ways in the order of their cost.
var All = []Way{Core, Agent, Recording, Turns, Passing}

func (w Way) records() bool { return w == Recording || w == Turns }

// Tool is the diagnose that is measured.
type Tool struct {
	// Path is the executable.
	Path string
	// Cache is the value of XDG_CACHE_HOME, where the tool keeps its libraries.
	Cache string
	// Limit is how long one diagnosis may take.
	Limit time.Duration
}

// runLimit bounds a run of the program in any of the ways.
const (
	runLimit = 15 * time.Second
	wait     = 4
	memory   = 2048
)

// Failing is a failure that a way has reproduced.
type Failing struct {
	// Core is the path of a core, Recording that of a recording; one of them is set.
	Core, Recording string
	// Passing are the recordings of runs that passed.
	Passing []string
}

// Program is a program with an input.
type Program struct {
	Path string
	Run  source.Run
	// Attempts is how many runs a failure may need: more than one for threads.
	Attempts int
	// Passes are inputs that it passes on, for the way Passing.
	Passes []source.Run
}

// Reproduce runs a program in an empty directory. It is nil if the program does not fail.
func (t *Tool) Reproduce(ctx context.Context, way Way, p Program, dir string) (*Failing, error) {
	if way == Passing {
		return t.reproduceWithPassing(ctx, p, dir)
	}
	attempts := p.Attempts
	if way.records() {
		attempts = 1 // record repeats the run itself
	}
	for range max(1, attempts) {
		f, hung, err := t.attempt(ctx, way, p, dir)
		if err != nil || f != nil || hung {
			return f, err
		}
	}
	return nil, nil
}

// reproduceWithPassing records the program on the input that it fails on, and on those that it passes on.
func (t *Tool) reproduceWithPassing(ctx context.Context, p Program, dir string) (*Failing, error) {
	f, err := t.Reproduce(ctx, Recording, p, dir)
	if f == nil || err != nil {
		return nil, err
	}
	for i, run := range p.Passes {
		c := t.command(Recording, Program{Path: p.Path, Run: run}, dir)
		c.Args = slices.Insert(c.Args, 1, "--all")
		c.Args[slices.Index(c.Args, "--output")+1] = filepath.Join(dir, "passing", strconv.Itoa(i))
		if _, err := limit.Run(ctx, c); err != nil {
			return nil, err
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "passing", "*", "*-passed"))
	f.Passing = append(f.Passing, found...)
	return f, err
}

// attempt runs the program once. A run that hung was ended by us: that is no failure, and the
// next one would take as long.
func (t *Tool) attempt(ctx context.Context, way Way, p Program, dir string) (_ *Failing, hung bool, err error) {
	if err := limit.Empty(dir); err != nil {
		return nil, false, err
	}
	r, err := limit.Run(ctx, t.command(way, p, dir))
	if err != nil {
		return nil, false, err
	}
	if way.records() {
		f, err := recorded(filepath.Join(dir, "recordings"))
		return f, false, err
	}
	if r.TimedOut || r.Status == 128+int(syscall.SIGXCPU) {
		return nil, true, nil
	}
	core, err := limit.Core(dir)
	if err != nil || core == "" {
		return nil, false, err
	}
	return &Failing{Core: core}, false, nil
}

// command runs the program in one of the ways.
func (t *Tool) command(way Way, p Program, dir string) limit.Command {
	c := limit.Command{Path: p.Path, Args: p.Run.Args, Stdin: p.Run.Stdin, Dir: dir, Processor: runLimit, Time: wait * runLimit, Memory: memory}
	var options []string
	switch way {
	case Core:
		return c
	case Agent:
		options = []string{"run"}
	case Recording, Turns:
		options = []string{"record", "--output", filepath.Join(dir, "recordings")}
		if way == Turns {
			options = append(options, "--races=turns")
		}
		if p.Attempts > 1 {
			// A run that hangs is recorded until the interrupt.
			options = append(options, "--repeat", strconv.Itoa(p.Attempts), "--until-fail")
			c.Interrupt = true
		}
	}
	c.Args = slices.Concat(options, []string{"--", p.Path}, p.Run.Args)
	c.Path = t.Path
	c.Env = t.environment()
	return c
}

func (t *Tool) environment() []string { return []string{"XDG_CACHE_HOME=" + t.Cache} }

// Recorded finds the recordings that an earlier Reproduce has made of a mutant in a directory
// of this name in dir; nil: there is none of a failure.
func Recorded(dir string) (*Failing, error) {
	return recorded(filepath.Join(dir, string(Recording), "recordings"))
}

// recorded finds the recordings that record has kept.
func recorded(dir string) (*Failing, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, fmt.Errorf("ways: %w", err)
	}
	var f Failing
	for _, path := range found {
		switch {
		case strings.HasSuffix(path, "-passed"):
			f.Passing = append(f.Passing, path)
		case strings.HasSuffix(path, "-SIGXCPU"), strings.HasPrefix(filepath.Base(path), "."):
			// Our limit, or a recording that was not finished.
		case f.Recording == "":
			f.Recording = path
		}
	}
	if f.Recording == "" {
		return nil, nil
	}
	return &f, nil
}

// ToolError says that diagnose itself failed, or took longer than it may.
type ToolError struct {
	Status   int
	TimedOut bool
	Message  string
}

func (e *ToolError) Error() string {
	if e.TimedOut {
		return "ways: diagnose did not end in time"
	}
	return fmt.Sprintf("ways: diagnose ended with status %d: %s", e.Status, e.Message)
}

// Diagnose returns the report on a failure, and its text. A *ToolError says that there is
// none.
func (t *Tool) Diagnose(ctx context.Context, f *Failing, dir string) (*reports.Document, []byte, error) {
	path := filepath.Join(dir, "report.json")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("ways: %w", err)
	}
	r, err := limit.Run(ctx, limit.Command{Path: t.Path, Args: t.arguments(f, path), Dir: dir, Env: t.environment(), Time: t.Limit})
	if err != nil {
		return nil, nil, err
	}
	if r.Status != 0 || r.Signal != 0 || r.TimedOut {
		return nil, nil, &ToolError{r.Status, r.TimedOut, lastLine(r.Stderr)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("ways: %w", err)
	}
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, nil, fmt.Errorf("ways: %s: %w", path, err)
	}
	if doc.Case == nil {
		return nil, nil, fmt.Errorf("ways: %s has no case", path)
	}
	return &doc, text, nil
}

// arguments have the replays end early enough for the report to be written in time.
func (t *Tool) arguments(f *Failing, report string) []string {
	args := []string{"crash", "--format", "json", "--output", report}
	if f.Core != "" {
		return append(args, "--core", f.Core)
	}
	args = append(args, "--time", (t.Limit * 3 / 4).String(), "--recording", f.Recording)
	for _, passing := range f.Passing {
		args = append(args, "--passing", passing)
	}
	return args
}

func lastLine(text []byte) string {
	s := strings.TrimSpace(string(text))
	return s[strings.LastIndexByte(s, '\n')+1:]
}
