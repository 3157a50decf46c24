package ways

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/bench/truth/limit"
)

// Once is a run that is recorded however it ends.
type Once struct {
	// Path is the program's, Args are its arguments.
	Path string
	Args []string
	// Options are those of diagnose record, besides --all and --output, and Env is its environment, besides the cache.
	Options, Env []string
	// Time is how long it may take before it is interrupted.
	Time time.Duration
}

// RecordOnce records a run in a directory, which it empties first, and returns the path of the recording; empty: there is none.
func (t *Tool) RecordOnce(ctx context.Context, o Once, dir string) (string, error) {
	if err := limit.Empty(dir); err != nil {
		return "", err
	}
	options := append([]string{"record", "--all", "--output", filepath.Join(dir, "recordings")}, o.Options...)
	c := limit.Command{Path: t.Path, Dir: dir, Time: o.Time, Interrupt: true, Env: append(t.environment(), o.Env...),
		Args: slices.Concat(options, []string{"--", o.Path}, o.Args)}
	if _, err := limit.Run(ctx, c); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "recordings", "[^.]*"))
	if err != nil {
		return "", fmt.Errorf("ways: %w", err)
	}
	if len(found) != 1 {
		return "", nil
	}
	return found[0], nil
}

// Passed reports whether a recording is of a run that passed: its name says so.
func Passed(recording string) bool { return strings.HasSuffix(recording, "-passed") }
