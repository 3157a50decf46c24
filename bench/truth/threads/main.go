// Command threads measures diagnose on programs with a bug of their threads, each of which is recorded in many
// schedules. It writes docs/truth-threads.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/truth/store"
	"diagnose/bench/truth/threads/raced"
	"diagnose/bench/truth/threads/tally"
	"diagnose/bench/truth/ways"
)

// options are those of the command line.
type options struct {
	root, page, keep string
	runs, per        int
	ways, only       string
	seed             uint64
	limit, total     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "top of the checkout whose diagnose is measured")
	flag.StringVar(&o.page, "write", "docs/truth-threads.md", "page to write, relative to the root; empty: none")
	flag.StringVar(&o.keep, "keep", "", "directory for the programs, recordings and reports, which are kept there; empty: they are removed")
	flag.IntVar(&o.runs, "runs", 24, "recordings of each build in each way")
	flag.IntVar(&o.per, "per", 5, "failing recordings of each build in each way that are diagnosed")
	flag.StringVar(&o.ways, "ways", strings.Join(allWays, ","), "kinds of races that are recorded")
	flag.StringVar(&o.only, "only", "", "names of the programs, with commas; empty: all")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the choice of recordings")
	flag.DurationVar(&o.limit, "limit", time.Minute, "time for one diagnosis")
	flag.DurationVar(&o.total, "total", 3*time.Hour, "time for everything; the page has the part that is done by then")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

var allWays = []string{"events", "turns"}

// bench is what all rows use.
type bench struct {
	options *options
	tool    ways.Tool
	dir     string // for programs, recordings and reports
}

func run(ctx context.Context, o *options) error {
	plan, err := planned(o)
	if err != nil {
		return err
	}
	code, err := store.ReadCode(ctx, o.root)
	if err != nil {
		return err
	}
	b := &bench{options: o}
	remove, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer remove()
	limited, cancel := context.WithTimeout(ctx, o.total)
	defer cancel()
	rows, err := b.all(limited, plan)
	if err != nil || ctx.Err() != nil || o.page == "" {
		return errors.Join(err, ctx.Err())
	}
	header := tally.Header{Commit: code.Commit, Runs: o.runs, Per: o.per, Planned: len(plan)}
	return store.Write(store.Under(o.root, o.page), []byte(tally.Page(header, rows)))
}

// open makes the directory, and builds diagnose in it. remove removes it, unless it is to be kept.
func (b *bench) open(ctx context.Context) (remove func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	remove = func() {}
	if b.options.keep != "" {
		b.dir, err = filepath.Abs(b.options.keep)
	} else {
		b.dir, err = os.MkdirTemp("", "truth-threads-")
		remove = func() { os.RemoveAll(b.dir) }
	}
	if err != nil {
		return nil, err
	}
	b.tool = ways.Tool{Path: filepath.Join(b.dir, "diagnose"), Cache: cache, Limit: b.options.limit}
	progress("building diagnose")
	if err := ways.Build(ctx, b.options.root, b.tool.Path); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// planned are the builds and ways that the options ask for.
func planned(o *options) (list []task, err error) {
	programs, err := raced.ReadAll(filepath.Join(o.root, "internal", "testdata", "raced"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.Name())
	}
	ways, err := chosen("way", o.ways, allWays)
	if err != nil {
		return nil, err
	}
	only, err := chosen("program", o.only, names)
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		if !slices.Contains(only, p.Name()) {
			continue
		}
		for _, c := range compilers {
			for _, way := range ways {
				list = append(list, task{p, c, way})
			}
		}
	}
	return list, nil
}

// chosen are the names of a list with commas, or all if it is empty.
func chosen(what, list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("there is no %s %q, but %s", what, n, strings.Join(all, ", "))
		}
	}
	return names, nil
}

// all measures the tasks until the time is up.
func (b *bench) all(ctx context.Context, plan []task) (rows []tally.Row, err error) {
	for i, t := range plan {
		row, err := b.one(ctx, t)
		if ctx.Err() != nil {
			progress("the time is up: %d of %d builds and ways are done", i, len(plan))
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		rows = append(rows, *row)
	}
	return rows, nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
