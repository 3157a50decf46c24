// Command truth measures diagnose on bugs that are put at random into real programs. It
// writes docs/truth.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// options are those of the command line.
type options struct {
	root, cache, list, page string
	packages                string
	shard                   string
	ways, headlines         string
	search                  int
	tries                   int
	quick, check            bool
	limit, total            time.Duration
}

// path is relative to the root unless it is absolute.
func (o *options) path(name string) string { return store.Under(o.root, name) }

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "top of the checkout whose diagnose is measured")
	flag.StringVar(&o.cache, "cache", "", "directory for sources, builds, mutants and results; diagnose/truth in the user's cache unless it is set")
	flag.StringVar(&o.list, "list", "bench/truth/mutants.txt", "list of the mutants that fail, relative to the root")
	flag.StringVar(&o.page, "write", "docs/truth.md", "table to write, relative to the root; empty: none")
	flag.StringVar(&o.packages, "packages", "", "only these packages, separated by commas")
	flag.StringVar(&o.shard, "shard", "", "part of the list, as 2/8")
	flag.StringVar(&o.ways, "ways", "core,agent,recording", "ways to diagnose")
	flag.IntVar(&o.search, "search", 0, "first search until the list has this many mutants of each package")
	flag.IntVar(&o.tries, "tries", 100, "seeds to try for a package in one search")
	flag.BoolVar(&o.quick, "quick", false, "judge 60 recordings that are kept, in ten minutes, and write no table")
	flag.StringVar(&o.headlines, "headlines", "", "only judge the recordings that are kept, without the hold-out, and write how good each kind of headline is to this page, relative to the root")
	flag.BoolVar(&o.check, "check", false, "only build the packages and run their originals")
	flag.DurationVar(&o.limit, "limit", time.Minute, "time for one mutant in one way")
	flag.DurationVar(&o.total, "total", 8*time.Hour, "time for everything; the rest is left for the next time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

// bench is what all steps use.
type bench struct {
	options *options
	store   *store.Store
	archive *source.Archive
	folders mutant.Folders
	tool    ways.Tool
	code    *store.Code
	// operatorsCode is the state of the code that makes bugs.
	operatorsCode string
	progress      *progress
	list          []store.Entry
	until         time.Time
}

func run(ctx context.Context, o *options) error {
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	if o.quick {
		return b.quick(ctx)
	}
	if o.check {
		return b.check(ctx)
	}
	if o.search > 0 {
		if err := b.search(ctx); err != nil {
			return err
		}
	}
	shard, err := store.ParseShard(o.shard)
	if err != nil {
		return err
	}
	if o.headlines != "" {
		return b.headlines(ctx, shard.Of(b.selected()))
	}
	err = b.judge(ctx, shard.Of(b.selected()))
	if o.page == "" {
		return err
	}
	return errors.Join(err, b.writePage())
}

func open(ctx context.Context, o *options) (*bench, error) {
	if o.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		o.cache = filepath.Join(cache, "diagnose", "truth")
	}
	inputs, drivers, err := source.Own(filepath.Join(o.cache, "own"))
	if err != nil {
		return nil, err
	}
	b := &bench{
		options: o, store: &store.Store{Dir: o.cache}, archive: &source.Archive{Dir: filepath.Join(o.cache, "archive")},
		folders:  mutant.Folders{Build: filepath.Join(o.cache, "build"), Scratch: filepath.Join(o.cache, "scratch"), Inputs: inputs, Drivers: drivers},
		progress: newProgress(os.Stderr), until: time.Now().Add(o.total),
	}
	if b.list, err = store.ReadList(o.path(o.list)); err != nil {
		return nil, err
	}
	if b.code, err = store.ReadCode(ctx, o.root); err != nil {
		return nil, err
	}
	b.operatorsCode, err = store.ReadOperators(ctx, o.root)
	return b, err
}

// selected are the entries of the packages that are asked for.
func (b *bench) selected() []store.Entry {
	var list []store.Entry
	for _, e := range b.list {
		if b.wanted(e.Package) {
			list = append(list, e)
		}
	}
	return list
}

func (b *bench) wanted(name string) bool {
	if b.options.packages == "" {
		return true
	}
	for p := range strings.SplitSeq(b.options.packages, ",") {
		if p == name {
			return true
		}
	}
	return false
}

func (b *bench) timeUp(ctx context.Context) bool {
	return ctx.Err() != nil || time.Now().After(b.until)
}
