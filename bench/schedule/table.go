package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"diagnose/replay/explore"
	"diagnose/replay/record"
)

// subject is a program whose bug needs a schedule.
type subject struct {
	name, source string
	args         []string // with which it passes, by itself
	kind         string
}

// subjects are the programs of internal/testdata/cause whose cause is one of concurrency, but
// for those whose race is with a handler of signals, which hunts do not send; and
// those of internal/testdata/hunt that say so (CAUSE). The former take how long they sleep in
// places, which decides by itself whether they fail: those with which they pass are
// taken.
func subjects() ([]subject, error) {
	var list []subject
	for _, dir := range []string{"internal/testdata/cause", "internal/testdata/hunt"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.c*"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s has no programs; run this from the top of the repository", dir)
		}
		for _, file := range files {
			s, err := readSubject(file)
			if err != nil {
				return nil, err
			}
			if s != nil {
				list = append(list, *s)
			}
		}
	}
	return list, nil
}

// ownArguments are for programs of which those that pass do nothing at all.
var ownArguments = map[string][]string{"search_publish": {"5"}}

// readSubject reads what a source's comments say; nil: it is no subject.
func readSubject(file string) (*subject, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &subject{name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), source: file}
	passes, threads := false, bytes.Contains(text, []byte("pthread_create")) || bytes.Contains(text, []byte("std::thread"))
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		text := lines.Text()
		if rest, ok := strings.CutPrefix(text, "// CAUSE kind="); ok && s.kind == "" {
			s.kind = strings.Fields(rest)[0]
		}
		if rest, ok := strings.CutPrefix(text, "// RUNS pass:"); ok && !passes {
			s.args, passes = strings.Fields(rest), true
		}
	}
	concurrency := strings.Contains(s.kind, "deadlock") || strings.Contains(s.kind, "violation") || strings.Contains(s.kind, "race")
	if own, found := ownArguments[s.name]; found {
		s.args = own
	}
	if !passes || !threads || !concurrency || s.kind == "signal-handler-race" {
		return nil, nil
	}
	return s, nil
}

var strategies = []record.HuntStrategy{record.HuntPCT, record.HuntRandom, record.HuntDelay}

const (
	tableBegin = "<!-- hunt: begin -->\n"
	tableEnd   = "<!-- hunt: end -->\n"
	// vainHunts in a row that find nothing end a cell.
	vainHunts = 5
	tableHead = `| Program | Cause | pct | random | delay | Seconds | By itself | Schedules | Time |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`
)

// programs writes the table into a document.
func (s *settings) programs(ctx context.Context) error {
	document, err := os.ReadFile(s.table)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(document, []byte(tableBegin))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table", s.table)
	}
	list, err := subjects()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(tableHead)
	for _, p := range list {
		if s.only != "" && p.name != s.only {
			continue
		}
		row, err := s.rows(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprint(os.Stderr, row)
		b.WriteString(row)
	}
	return os.WriteFile(s.table, slices.Concat(before, []byte(tableBegin), b.Bytes(), []byte(tableEnd), after), 0o644)
}

// rows are of the program as it is built always, and, unless every strategy finds its
// bug so, of one with points.
func (s *settings) rows(ctx context.Context, p subject) (string, error) {
	native, err := s.build(p.source)
	if err != nil {
		return "", err
	}
	cells, err := s.hunts(ctx, native, p.args)
	if err != nil {
		return "", err
	}
	own := alone(ctx, native, p.args, max(s.alone, longest(cells)))
	text := row(p.name, p.kind, cells, own)
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.hunts > len(c.schedules) }) {
		return text, nil
	}
	points, err := s.buildWithPoints(p.source)
	if err != nil {
		return "", err
	}
	if cells, err = s.hunts(ctx, points, p.args); err != nil {
		return "", err
	}
	return text + row(p.name+", `diagnose cc`", p.kind, cells, own), nil
}

// cell is the result of the hunts with one strategy.
type cell struct {
	hunts     int
	schedules []int     // up to the first that failed, of the hunts that found it
	seconds   []float64 // of the same
	tried     int       // schedules, of those that did not
	longest   time.Duration
	endless   bool
}

func (s *settings) hunts(ctx context.Context, exe string, args []string) ([]cell, error) {
	var cells []cell
	for _, strategy := range strategies {
		var c cell
		for c.hunts < s.tries && !c.endless && (len(c.schedules) > 0 || c.hunts < vainHunts) {
			o, err := s.options(ctx, exe, args)
			if err != nil {
				return nil, err
			}
			o.Strategy, o.First = strategy, uint64(c.hunts)*uint64(s.seeds)+1
			r, err := explore.Hunt(ctx, o)
			var endless *explore.NoEndError
			if c.endless = errors.As(err, &endless); c.endless {
				break
			}
			if err != nil {
				return nil, err
			}
			c.hunts++
			c.longest = max(c.longest, time.Duration(r.Time*float64(time.Second)))
			if r.Found {
				c.schedules, c.seconds = append(c.schedules, r.Schedules), append(c.seconds, r.Time)
			} else {
				c.tried += r.Schedules
			}
		}
		cells = append(cells, c)
	}
	return cells, nil
}

func longest(cells []cell) time.Duration {
	var d time.Duration
	for _, c := range cells {
		d = max(d, c.longest)
	}
	return d
}

// median is of all hunts: those that found nothing took longer than any; false: it
// is one of those.
func median[T int | float64](found []T, all int) (T, bool) {
	sorted := slices.Sorted(slices.Values(found))
	middle := (all - 1) / 2
	if all == 0 || middle >= len(sorted) {
		return 0, false
	}
	return sorted[middle], true
}

func (c *cell) text() string {
	if c.endless {
		return "no end"
	}
	n, ok := median(c.schedules, c.hunts)
	switch {
	case len(c.schedules) == 0:
		return fmt.Sprintf("not in %d", c.tried)
	case !ok:
		return fmt.Sprintf("in %d of %d", len(c.schedules), c.hunts)
	case len(c.schedules) < c.hunts:
		return fmt.Sprintf("%d (%d of %d)", n, len(c.schedules), c.hunts)
	default:
		return fmt.Sprint(n)
	}
}

// native is what came of running a program again and again: each run takes so many
// seconds where nothing else runs.
type native struct {
	runs, failed int
	seconds      float64
}

// row compares the program by itself with the best of the strategies.
func row(name, kind string, cells []cell, own native) string {
	var texts []string
	schedules, seconds := 0, 0.0
	for _, c := range cells {
		texts = append(texts, c.text())
		n, ok := median(c.schedules, c.hunts)
		if t, _ := median(c.seconds, c.hunts); ok && (seconds == 0 || t < seconds) {
			schedules, seconds = n, t
		}
	}
	took, fewer, faster := "-", "-", "-"
	if seconds > 0 {
		took = fmt.Sprintf("%.2f", seconds)
		more := ""
		if own.failed == 0 {
			more = "> "
		}
		runs := float64(own.runs) / float64(max(own.failed, 1)) // up to a failure
		fewer = more + ratio(runs/float64(schedules))
		faster = more + ratio(runs*own.seconds/seconds)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d of %d | %s | %s |\n", name, strings.ReplaceAll(kind, "|", " or "), strings.Join(texts, " | "), took,
		own.failed, own.runs, fewer, faster)
}

func ratio(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

const (
	// rareRuns of which none failed say that fewer than one in 1,000 do, with a
	// confidence of 95 percent; enoughFailures say how many do.
	rareRuns       = 3000
	enoughFailures = 30
	// sideBySide programs run at a time: most of them sleep. That they disturb each
	// other is in favour of failures.
	sideBySide = 48
	aloneLimit = 10 * time.Second // what takes longer hangs, so it failed
)

// alone runs the program as it is, without any other for so long, which says how long
// a run takes, and then side by side with itself until it is known how seldom it fails.
func alone(ctx context.Context, exe string, args []string, budget time.Duration) native {
	var n native
	run := func() bool {
		limit, cancel := context.WithTimeout(ctx, aloneLimit)
		defer cancel()
		return exec.CommandContext(limit, exe, args...).Run() != nil
	}
	started := time.Now()
	for ; time.Since(started) < budget && ctx.Err() == nil; n.runs++ {
		if run() {
			n.failed++
		}
	}
	n.seconds = time.Since(started).Seconds() / float64(n.runs)
	var mu sync.Mutex
	// next counts a run as made before it is, so that what hangs is not left out.
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if n.runs >= rareRuns || n.failed >= enoughFailures || ctx.Err() != nil {
			return false
		}
		n.runs++
		return true
	}
	var all sync.WaitGroup
	for range sideBySide {
		all.Go(func() {
			for next() {
				if run() {
					mu.Lock()
					n.failed++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return n
}
