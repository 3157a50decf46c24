package ways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
)

// All are the ways in the order of their cost.
var All = []Way{Core, Agent, Recording}

// Tool is the diagnose that is measured.
type Tool struct {
	// Path is the executable.
	Path string
	// Cache is the value of XDG_CACHE_HOME, where the tool keeps its libraries.
	Cache string
	// Limit is how long one diagnosis may take.
	Limit time.Duration
	// Attempts is how many runs a failure may need: more than one for threads.
	Attempts int
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
	// Passing is the recording of a run that passed; empty: there is none.
	Passing string
}

// Reproduce runs a program in an empty directory. It is nil if the program does not fail.
func (t *Tool) Reproduce(ctx context.Context, way Way, program string, run source.Run, dir string) (*Failing, error) {
	for range max(1, t.Attempts) {
		f, err := t.attempt(ctx, way, program, run, dir)
		if err != nil || f != nil {
			return f, err
		}
	}
	return nil, nil
}

func (t *Tool) attempt(ctx context.Context, way Way, program string, run source.Run, dir string) (*Failing, error) {
	if err := limit.Empty(dir); err != nil {
		return nil, err
	}
	if _, err := limit.Run(ctx, t.command(way, program, run, dir)); err != nil {
		return nil, err
	}
	if way == Recording {
		return recorded(filepath.Join(dir, "recordings"))
	}
	core, err := limit.Core(dir)
	if err != nil || core == "" {
		return nil, err
	}
	return &Failing{Core: core}, nil
}

// command runs the program in one of the ways.
func (t *Tool) command(way Way, program string, run source.Run, dir string) limit.Command {
	c := limit.Command{Path: program, Args: run.Args, Stdin: run.Stdin, Dir: dir, Processor: runLimit, Time: wait * runLimit, Memory: memory}
	switch way {
	case Core:
		return c
	case Agent:
		c.Args = append([]string{"run", "--", program}, run.Args...)
	case Recording:
		c.Args = append([]string{"record", "--output", filepath.Join(dir, "recordings"), "--", program}, run.Args...)
		if t.Attempts > 1 {
			c.Args = append([]string{"record", "--output", filepath.Join(dir, "recordings"), "--repeat", fmt.Sprint(t.Attempts), "--until-fail", "--", program}, run.Args...)
		}
	}
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
		if strings.HasSuffix(path, "-passed") {
			f.Passing = path
		} else if f.Recording == "" {
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
	if f.Passing != "" {
		args = append(args, "--passing", f.Passing)
	}
	return args
}

func lastLine(text []byte) string {
	s := strings.TrimSpace(string(text))
	return s[strings.LastIndexByte(s, '\n')+1:]
}
