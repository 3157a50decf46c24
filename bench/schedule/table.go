package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/explore"
	"diagnose/record"
)

// subject is a program whose bug needs a schedule.
type subject struct {
	name, source string
	args         []string // with which it passes, by itself
	kind         string
}

// subjects are the programs of testdata/cause whose cause is one of concurrency.
// Their arguments are how long they sleep in places, which decides by itself whether
// they fail: those with which they pass are taken.
func subjects(dir string) ([]subject, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.c*"))
	if err != nil {
		return nil, err
	}
	var list []subject
	for _, file := range files {
		s := subject{name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), source: file}
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		passes := false
		for lines := bufio.NewScanner(f); lines.Scan(); {
			text := lines.Text()
			if rest, ok := strings.CutPrefix(text, "// CAUSE kind="); ok && s.kind == "" {
				s.kind = strings.Fields(rest)[0]
			}
			if rest, ok := strings.CutPrefix(text, "// RUNS pass:"); ok && !passes {
				s.args, passes = strings.Fields(rest), true
			}
		}
		f.Close()
		if passes && (strings.Contains(s.kind, "deadlock") || strings.Contains(s.kind, "violation") || strings.Contains(s.kind, "race")) {
			list = append(list, s)
		}
	}
	return list, nil
}

var strategies = []record.HuntStrategy{record.HuntPCT, record.HuntRandom, record.HuntDelay}

// programs writes the table.
func (s *settings) programs(ctx context.Context) error {
	list, err := subjects("testdata/cause")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# How soon hunting finds a bug

The concurrency programs of testdata/cause, with arguments with which they pass by
themselves. For each strategy the schedules up to the first that fails, the median of
%d hunts with seeds of their own, and in how many of them it was found among %d. The
last column is the program run again and again, by itself, for as long as the longest
of those hunts took, 1 s at least: how many runs failed. Written by `+"`make schedules-hunt`"+`.

| Program | Cause | pct | random | delay | by itself |
| --- | --- | ---: | ---: | ---: | ---: |
`, s.tries, s.seeds)
	for _, p := range list {
		if s.only != "" && p.name != s.only {
			continue
		}
		row, err := s.row(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprint(os.Stderr, row)
		b.WriteString(row)
	}
	return os.WriteFile(s.table, []byte(b.String()), 0o644)
}

func (s *settings) row(ctx context.Context, p subject) (string, error) {
	exe, err := s.build(p.source)
	if err != nil {
		return "", err
	}
	row := fmt.Sprintf("| %s | %s |", p.name, strings.ReplaceAll(p.kind, "|", " or "))
	longest := time.Second
	for _, strategy := range strategies {
		var counts []int
		for try := range s.tries {
			o, err := s.options(ctx, exe, p.args)
			if err != nil {
				return "", err
			}
			o.Strategy, o.First = strategy, uint64(try)*uint64(s.seeds)+1
			r, err := explore.Hunt(ctx, o)
			if err != nil {
				return row + fmt.Sprintf(" %v |\n", err), nil
			}
			longest = max(longest, time.Duration(r.Time*float64(time.Second)))
			if r.Found {
				counts = append(counts, r.Schedules)
			}
		}
		row += " " + median(counts, s.tries) + " |"
	}
	runs, failed := alone(ctx, exe, p.args, longest)
	return row + fmt.Sprintf(" %d of %d |\n", failed, runs), nil
}

// median is of all hunts: those that found nothing took longer than any.
func median(counts []int, tries int) string {
	slices.Sort(counts)
	switch middle := (tries - 1) / 2; {
	case len(counts) == 0:
		return "not found"
	case middle >= len(counts):
		return fmt.Sprintf("found in %d of %d", len(counts), tries)
	case len(counts) < tries:
		return fmt.Sprintf("%d (%d of %d)", counts[middle], len(counts), tries)
	default:
		return fmt.Sprint(counts[middle])
	}
}

// alone runs the program as it is, for so long.
func alone(ctx context.Context, exe string, args []string, budget time.Duration) (runs, failed int) {
	for end := time.Now().Add(budget); time.Now().Before(end); runs++ {
		limit, cancel := context.WithTimeout(ctx, 10*time.Second)
		if exec.CommandContext(limit, exe, args...).Run() != nil {
			failed++
		}
		cancel()
	}
	return runs, failed
}
