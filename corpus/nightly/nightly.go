package nightly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
)

// Options are the options of a night.
type Options struct {
	// Corpus is open for changes.
	Corpus *corpus.Corpus
	// Version is the version of diagnose. Failures that it has already diagnosed are skipped.
	Version string
	// Command runs diagnose; "crash" and its flags are appended. Environ is added to this
	// process's environment.
	Command []string
	Environ []string
	// Since is the length of the summary's period.
	Since time.Duration
	// Jobs is how many analyses run at once or, with Remote, how many are begun at once.
	Jobs int
	// Remote has the failures analysed elsewhere; nil: Command does it, in this process's host.
	Remote Remote
	// Budget is the time limit of the night; 0 is none. Time and Memory are the limits for each
	// failure's processes, Memory in bytes.
	Budget time.Duration
	Time   time.Duration
	Memory int64
	// Retry tries again the failures that this version could not diagnose.
	Retry bool
	// TrustImported also replays recordings that came in archives or from an engine. A replay is no sandbox: the
	// maker of a recording chooses what it executes.
	TrustImported bool
	// Progress is called, one call at a time, when a failure is begun and when it is done; it
	// may be nil.
	Progress func(Progress)
}

// Progress is the progress of a night.
type Progress struct {
	// Done of Total failures are done, by this night and others that run at the same time.
	Done, Total int
	// Entry is the failure, and Result its result; nil: it begins.
	Entry  *corpus.Entry
	Result *corpus.Result
	// Left estimates the remaining time; 0: not known yet.
	Left time.Duration
}

// Run is the work of a night.
type Run struct {
	// Version is the version of diagnose, Started and Ended the times of the run.
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Diagnosed and Undiagnosed count the failures that this run analysed, NotReached those
	// left because its budget was spent.
	Diagnosed   int `json:"diagnosed"`
	Undiagnosed int `json:"undiagnosed"`
	NotReached  int `json:"not_reached"`
	// NotTrusted counts the recordings that were skipped because they were imported.
	NotTrusted int `json:"not_trusted,omitempty"`
	// Memory is the budget of each failure's processes, in bytes. MemoryBy says how it was
	// enforced: "cgroup" by the kernel, "polling" by a check ten times a second. Then MemoryWhy
	// says why no control group could be used. Both are missing if Fleet's workers say it.
	Memory    int64                `json:"memory_bytes"`
	MemoryBy  analysis.Enforcement `json:"memory_by,omitempty"`
	MemoryWhy string               `json:"memory_why,omitempty"`
	// CPU is the processor time of the analyses, in nanoseconds.
	CPU time.Duration `json:"cpu_ns"`
	// PerCoreHour is how many failures can be analysed in an hour of one processor; 0: none
	// was.
	PerCoreHour float64 `json:"failures_per_core_hour"`
	// Fleet describes the workers that did it; nil: this host did.
	Fleet *Fleet `json:"fleet,omitempty"`
}

// night is a run in progress.
type night struct {
	Options
	deadline time.Time // zero: none
	analyser *analysis.Analyser
	passing  map[build][]Place // what failures are compared with, as of the last round

	mu      sync.Mutex
	run     Run
	total   int // failures to diagnose
	done    int // those that are done, by any process
	failure error
	cancel  context.CancelFunc
	unable  map[string]bool // entries that no worker can analyse
	lacking []Unable
}

// errOver says that the night's budget, not the failure's, has ended an analysis.
var errOver = errors.New("the night is over")

// Diagnose diagnoses the failures that are left. When ctx ends, running analyses are stopped
// and left for another night, and the error is that of the context.
func Diagnose(ctx context.Context, opts Options) (*Run, error) {
	if opts.Jobs < 1 || opts.Time <= 0 || opts.Memory <= 0 || opts.Version == "" {
		return nil, errors.New("nightly: jobs, time, memory or version is not set")
	}
	n := &night{Options: opts, unable: map[string]bool{}}
	if opts.Remote == nil {
		a, err := analysis.Open(analysis.Options{Version: opts.Version, Command: opts.Command, Environ: opts.Environ, Scratch: opts.Corpus.Scratch})
		if err != nil {
			return nil, err
		}
		defer a.Close()
		n.analyser = a
	}
	n.run = Run{Version: opts.Version, Started: time.Now().UTC(), Memory: opts.Memory}
	if opts.Budget > 0 {
		n.deadline = n.run.Started.Add(opts.Budget)
	}
	if opts.Retry {
		if _, err := opts.Corpus.Forget(ctx, opts.Version); err != nil {
			return nil, err
		}
	}
	inner, cancel := context.WithCancel(ctx)
	n.cancel = cancel
	defer cancel()
	err := n.all(inner)
	if n.failure != nil {
		return nil, n.failure
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("nightly: interrupted: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	n.run.Ended = time.Now().UTC()
	n.describe()
	if hours := n.run.CPU.Hours(); hours > 0 {
		n.run.PerCoreHour = float64(n.run.Diagnosed+n.run.Undiagnosed) / hours
	}
	return &n.run, nil
}

// describe adds how the analyses were done.
func (n *night) describe() {
	if n.Remote == nil {
		n.run.MemoryBy, n.run.MemoryWhy = n.analyser.Enforcement()
		return
	}
	n.run.Fleet = n.Remote.Fleet()
	n.run.Fleet.Unable = n.lacking
}

// others is how long to wait for the claims of another process.
const others = 500 * time.Millisecond

// all does rounds until nothing is left: meanwhile failures may be added, and other processes
// may end before they finish their claims.
func (n *night) all(ctx context.Context) error {
	for {
		left, err := n.left(ctx)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		if n.over() {
			n.run.NotReached = len(left)
			return nil
		}
		began := n.round(ctx, left)
		if err := ctx.Err(); err != nil {
			return err
		}
		if began {
			continue
		}
		select { // others have claimed all of them
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(others):
		}
	}
}

func (n *night) over() bool { return !n.deadline.IsZero() && !time.Now().Before(n.deadline) }

// left returns the failures that are not done, in the order in which they should be.
func (n *night) left(ctx context.Context) ([]corpus.Entry, error) {
	todo, err := n.Corpus.Undiagnosed(ctx, n.Version)
	if err != nil {
		return nil, err
	}
	all, err := n.Corpus.List(ctx, corpus.Filter{Dropped: true})
	if err != nil {
		return nil, err
	}
	n.passing = n.comparable(all)
	n.mu.Lock()
	defer n.mu.Unlock()
	todo = slices.DeleteFunc(todo, func(e corpus.Entry) bool { return n.unable[e.ID] })
	found := len(todo)
	todo = slices.DeleteFunc(todo, func(e corpus.Entry) bool { return !n.trusts(&e) })
	n.run.NotTrusted = found - len(todo)
	// Failures that others finish meanwhile also count as done.
	n.total = max(n.total, n.done+len(todo))
	n.done = max(n.done, n.total-len(todo))
	return order(todo, all, n.run.Started.Add(-n.Since)), nil
}

// trusts reports whether an entry may be replayed, or is not replayed at all.
func (n *night) trusts(e *corpus.Entry) bool {
	return n.TrustImported || !e.Imported || e.Kind != corpus.KindRecording
}

// round distributes the failures to as many workers as there are jobs. It reports whether this
// night could claim one of them.
func (n *night) round(ctx context.Context, list []corpus.Entry) bool {
	type turn struct {
		entry    corpus.Entry
		priority int
	}
	next := make(chan turn)
	var group sync.WaitGroup
	var began bool
	for range n.Jobs {
		group.Go(func() {
			for t := range next {
				mine, err := n.one(ctx, &t.entry, t.priority)
				n.mu.Lock()
				began = began || mine
				if err != nil && n.failure == nil && ctx.Err() == nil {
					n.failure = err
					n.cancel()
				}
				n.mu.Unlock()
			}
		})
	}
	for i, e := range list {
		if ctx.Err() != nil || n.over() {
			break
		}
		next <- turn{e, i + 1}
	}
	close(next)
	group.Wait()
	return began
}

// one claims a failure, analyses it and stores the result. It reports whether this process got
// the claim. An error ends the night.
func (n *night) one(ctx context.Context, e *corpus.Entry, priority int) (bool, error) {
	if ctx.Err() != nil || n.over() {
		return false, nil
	}
	switch err := n.Corpus.Claim(ctx, e.ID, n.Version); {
	case errors.Is(err, corpus.ErrTaken):
		return false, nil
	case err != nil:
		return false, err
	}
	n.say(e, nil)
	result, err := n.analyse(ctx, e, priority)
	if err != nil {
		// It does not use ctx, which may have ended the analysis.
		released := n.Corpus.Release(context.WithoutCancel(ctx), e.ID)
		var unable *UnableError
		if errors.As(err, &unable) {
			n.noteUnable(e.ID, unable.Lack)
			err = nil
		}
		if errors.Is(err, errOver) {
			err = nil
		}
		return true, errors.Join(err, released)
	}
	err = n.Corpus.Finish(context.WithoutCancel(ctx), e.ID, *result)
	if err == nil || errors.Is(err, corpus.ErrTaken) {
		err = errors.Join(err, n.stored(ctx, e.ID))
	}
	if errors.Is(err, corpus.ErrTaken) {
		return true, nil // it was removed meanwhile
	}
	if err != nil {
		return true, err
	}
	n.say(e, result)
	return true, nil
}

// say updates the counts, and calls Progress.
func (n *night) say(e *corpus.Entry, r *corpus.Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r != nil {
		n.done++
		n.total = max(n.total, n.done)
		n.run.CPU += r.CPU
		if r.Diagnosed {
			n.run.Diagnosed++
		} else {
			n.run.Undiagnosed++
		}
	}
	if n.Progress != nil {
		n.Progress(Progress{n.done, n.total, e, r, n.remaining()})
	}
}

// remaining extrapolates the speed so far.
func (n *night) remaining() time.Duration {
	mine := n.run.Diagnosed + n.run.Undiagnosed
	if mine == 0 {
		return 0
	}
	left := time.Since(n.run.Started) / time.Duration(mine) * time.Duration(n.total-n.done)
	if !n.deadline.IsZero() {
		left = min(left, max(0, time.Until(n.deadline)))
	}
	return left
}
