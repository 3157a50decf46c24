// Command small measures diagnose on small programs with one bug, which are made from seeds. It
// writes docs/truth-small.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"diagnose/bench/truth/small/program"
	"diagnose/bench/truth/small/tally"
	"diagnose/bench/truth/small/trial"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// options are those of the command line.
type options struct {
	root, cache, page string
	from, seeds       uint64
	jobs              int
	show              bool
	limit, total      time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "top of the checkout whose diagnose is measured")
	flag.StringVar(&o.cache, "cache", "", "directory for programs and results; diagnose/truth-small in the user's cache unless it is set")
	flag.StringVar(&o.page, "write", "docs/truth-small.md", "page to write, relative to the root; empty: none")
	flag.Uint64Var(&o.from, "from", 0, "first seed")
	flag.Uint64Var(&o.seeds, "seeds", 1200, "number of seeds")
	flag.IntVar(&o.jobs, "jobs", 2, "programs that are tried at once")
	flag.BoolVar(&o.show, "show", false, "only print the program of the first seed, unless it is of the hold-out, and its answers")
	flag.DurationVar(&o.limit, "limit", time.Minute, "time for one diagnosis")
	flag.DurationVar(&o.total, "total", 8*time.Hour, "time for everything; the rest is left for the next time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "small:", err)
		os.Exit(1)
	}
}

// bench is what all seeds use.
type bench struct {
	options   *options
	generator *program.Generator
	store     *tally.Store
	code      *store.Code
	tool      ways.Tool
	scratch   string // a directory of this process's own
}

func run(ctx context.Context, o *options) error {
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	if o.show {
		return b.show(o.from)
	}
	if err := b.buildTool(ctx); err != nil {
		return err
	}
	if b.scratch, err = os.MkdirTemp(o.cache, "scratch-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	limited, cancel := context.WithTimeout(ctx, o.total)
	defer cancel()
	err = b.all(limited)
	if o.page == "" {
		return err
	}
	return errors.Join(err, b.writePage())
}

func open(ctx context.Context, o *options) (*bench, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	if o.cache == "" {
		o.cache = filepath.Join(cache, "diagnose", "truth-small")
	}
	if o.cache, err = filepath.Abs(o.cache); err != nil {
		return nil, err
	}
	b := &bench{options: o, store: &tally.Store{Dir: o.cache}}
	if b.generator, err = program.New(); err != nil {
		return nil, err
	}
	if b.code, err = store.ReadCode(ctx, o.root); err != nil {
		return nil, err
	}
	b.tool = ways.Tool{Path: filepath.Join(o.cache, "tool", b.code.Hash, "diagnose"), Cache: cache, Limit: o.limit}
	return b, nil
}

// buildTool builds the diagnose that is measured, once for each state of its code.
func (b *bench) buildTool(ctx context.Context) error {
	if _, err := os.Stat(b.tool.Path); err == nil {
		return nil
	}
	return ways.Build(ctx, b.options.root, b.tool.Path)
}

// all tries the seeds that have no result for the code, first those that have none at all.
func (b *bench) all(ctx context.Context) error {
	work, err := b.waiting()
	if err != nil {
		return err
	}
	seeds := make(chan uint64)
	failed := make(chan error, b.options.jobs)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for job := range b.options.jobs {
		group.Go(func() {
			for seed := range seeds {
				if err := b.one(ctx, seed, job); err != nil {
					failed <- err
					cancel(err)
					return
				}
			}
		})
	}
	for i, seed := range work {
		select {
		case seeds <- seed:
			continue
		case <-ctx.Done():
		}
		err = fmt.Errorf("%d of %d seeds are left for the next time", len(work)-i, len(work))
		break
	}
	close(seeds)
	group.Wait()
	select {
	case first := <-failed:
		return first
	default:
		return err
	}
}

// waiting are the seeds that are to be tried.
func (b *bench) waiting() (list []uint64, err error) {
	var old []uint64
	for seed := b.options.from; seed < b.options.from+b.options.seeds; seed++ {
		p, err := b.generator.Make(seed)
		if err != nil {
			return nil, err
		}
		r, err := b.store.Load(seed)
		switch {
		case err != nil:
			return nil, err
		case r == nil || r.Digest != tally.Digest(p):
			list = append(list, seed)
		case r.Code.Hash != b.code.Hash:
			old = append(old, seed)
		}
	}
	return append(list, old...), nil
}

// one tries a seed. The report is kept, the recordings are not.
func (b *bench) one(ctx context.Context, seed uint64, job int) error {
	p, err := b.generator.Make(seed)
	if err != nil {
		return err
	}
	dir := filepath.Join(b.scratch, fmt.Sprint(job))
	v, err := trial.Run(ctx, &b.tool, p, dir)
	if ctx.Err() != nil {
		return nil // the time is up: the seed is left for the next time
	}
	if err != nil {
		return err
	}
	return b.store.Save(tally.Of(p, v, *b.code))
}

// results are those of the programs that the seeds make now.
func (b *bench) results() (list []tally.Result, err error) {
	for seed := b.options.from; seed < b.options.from+b.options.seeds; seed++ {
		p, err := b.generator.Make(seed)
		if err != nil {
			return nil, err
		}
		r, err := b.store.Load(seed)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Digest == tally.Digest(p) {
			list = append(list, *r)
		}
	}
	return list, nil
}

func (b *bench) writePage() error {
	list, err := b.results()
	if err != nil {
		return err
	}
	return os.WriteFile(store.Under(b.options.root, b.options.page), []byte(tally.Page(list)), 0o644)
}

// show prints a program with its answers.
func (b *bench) show(seed uint64) error {
	if program.HoldOut(seed) {
		return fmt.Errorf("seed %d is of the hold-out", seed)
	}
	p, err := b.generator.Make(seed)
	if err != nil {
		return err
	}
	fmt.Printf("%s// %s, %s; %s %s -%s; root %d, seen %d\n", p.Source, p.Kind, p.Ending, p.Language, p.Compiler, p.Level, p.Root, p.Seen)
	return nil
}
