package nightly

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"diagnose/corpus"
)

// Options say how a night goes.
type Options struct {
	// Corpus is open for changes.
	Corpus *corpus.Corpus
	// Version is that of diagnose: what it has diagnosed already is left alone.
	Version string
	// Command runs diagnose; "crash" and its flags are appended. Environ is added
	// to this process's environment.
	Command []string
	Environ []string
	// Since is how far back the summary looks.
	Since time.Duration
	// Jobs run at once.
	Jobs int
	// Budget bounds the night; 0 does not. Time and Memory bound each failure's
	// processes, in bytes the latter.
	Budget time.Duration
	Time   time.Duration
	Memory int64
	// Retry tries again what this version could not diagnose.
	Retry bool
	// TrustImported has recordings replayed that came in archives. Replays are no
	// sandboxes: whoever made a recording chooses what they execute.
	TrustImported bool
	// Progress is called, one call at a time, when a failure is begun and when it is
	// done; nil is allowed.
	Progress func(Progress)
}

// Progress is how far a night is.
type Progress struct {
	// Done of Total failures are done, by this night and others beside it.
	Done, Total int
	// Entry is the failure concerned, and Result what came of it; nil: it begins.
	Entry  *corpus.Entry
	Result *corpus.Result
	// Left estimates how long it still takes; 0: unknown yet.
	Left time.Duration
}

// Run is what a night did.
type Run struct {
	// Version is that of diagnose, Started and Ended when the run did so.
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Diagnosed and Undiagnosed count what this run did; NotReached what it left,
	// because its budget was over.
	Diagnosed   int `json:"diagnosed"`
	Undiagnosed int `json:"undiagnosed"`
	NotReached  int `json:"not_reached"`
	// NotTrusted counts the recordings that were left alone because they were imported.
	NotTrusted int `json:"not_trusted,omitempty"`
	// Memory is the budget of each failure's processes, in bytes. MemoryBy says how it was
	// kept: "cgroup" by the kernel, "polling" by looking ten times a second, and then
	// MemoryWhy says why no control group could be used.
	Memory    int64  `json:"memory_bytes"`
	MemoryBy  string `json:"memory_by"`
	MemoryWhy string `json:"memory_why,omitempty"`
	// CPU is the processor time of the analyses, in nanoseconds.
	CPU time.Duration `json:"cpu_ns"`
	// PerCoreHour is how many failures an hour of one processor suffices for; 0: none
	// was done.
	PerCoreHour float64 `json:"failures_per_core_hour"`
}

// The ways to keep a budget of memory.
const (
	MemoryGrouped = "cgroup"
	MemoryPolled  = "polling"
)

// night is a run that goes on.
type night struct {
	Options
	deadline time.Time                     // zero: there is none
	groups   atomic.Pointer[controlGroups] // nil: memory is polled

	mu      sync.Mutex
	run     Run
	total   int // failures that were to be diagnosed, and
	done    int // those that are, by whomever
	failure error
	cancel  context.CancelFunc
}

// errOver says that the night's budget, not the failure's, has ended an analysis.
var errOver = errors.New("the night is over")

// Diagnose does what there is to do. When ctx ends, what is being analysed is stopped
// and left for another night; the error is the context's then.
func Diagnose(ctx context.Context, opts Options) (*Run, error) {
	if opts.Jobs < 1 || opts.Time <= 0 || opts.Memory <= 0 || len(opts.Command) == 0 || opts.Version == "" {
		return nil, errors.New("nightly: jobs, time, memory, command or version is not set")
	}
	n := &night{Options: opts}
	n.run = Run{Version: opts.Version, Started: time.Now().UTC(), Memory: opts.Memory, MemoryBy: MemoryGrouped}
	if opts.Budget > 0 {
		n.deadline = n.run.Started.Add(opts.Budget)
	}
	if opts.Retry {
		if _, err := opts.Corpus.Forget(ctx, opts.Version); err != nil {
			return nil, err
		}
	}
	if groups, err := openControlGroups(); err == nil {
		defer groups.close()
		n.groups.Store(groups)
	} else {
		n.poll(err)
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
	if hours := n.run.CPU.Hours(); hours > 0 {
		n.run.PerCoreHour = float64(n.run.Diagnosed+n.run.Undiagnosed) / hours
	}
	return &n.run, nil
}

// others is how long is waited for what another process has claimed.
const others = 500 * time.Millisecond

// all does rounds until nothing is left: failures may be added meanwhile, and others
// may die with what they had claimed.
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
		select { // all of them are others'
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(others):
		}
	}
}

func (n *night) over() bool { return !n.deadline.IsZero() && !time.Now().Before(n.deadline) }

// left is what is not done, in the order in which it should be.
func (n *night) left(ctx context.Context) ([]corpus.Entry, error) {
	todo, err := n.Corpus.Undiagnosed(ctx, n.Version)
	if err != nil {
		return nil, err
	}
	all, err := n.Corpus.List(ctx, corpus.Filter{Dropped: true})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	found := len(todo)
	todo = slices.DeleteFunc(todo, func(e corpus.Entry) bool { return !n.trusts(&e) })
	n.run.NotTrusted = found - len(todo)
	// What others do meanwhile is done as well.
	n.total = max(n.total, n.done+len(todo))
	n.done = max(n.done, n.total-len(todo))
	return order(todo, all, n.run.Started.Add(-n.Since)), nil
}

// trusts reports whether an entry may be replayed, or is not replayed at all.
func (n *night) trusts(e *corpus.Entry) bool {
	return n.TrustImported || !e.Imported || e.Kind != corpus.KindRecording
}

// round gives the failures to as many workers as there are jobs. It reports whether
// one of them was this night's to do.
func (n *night) round(ctx context.Context, list []corpus.Entry) bool {
	next := make(chan corpus.Entry)
	var group sync.WaitGroup
	var began bool
	for range n.Jobs {
		group.Go(func() {
			for e := range next {
				mine, err := n.one(ctx, &e)
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
	for _, e := range list {
		if ctx.Err() != nil || n.over() {
			break
		}
		next <- e
	}
	close(next)
	group.Wait()
	return began
}

// one claims a failure, has it analysed and keeps what came of it. It reports whether
// the claim was this process's. The error ends the night.
func (n *night) one(ctx context.Context, e *corpus.Entry) (bool, error) {
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
	result, err := n.analyse(ctx, e)
	if err != nil {
		// Not by ctx, which may be what ended it.
		released := n.Corpus.Release(context.WithoutCancel(ctx), e.ID)
		if errors.Is(err, errOver) {
			err = nil
		}
		return true, errors.Join(err, released)
	}
	err = n.Corpus.Finish(context.WithoutCancel(ctx), e.ID, *result)
	if errors.Is(err, corpus.ErrTaken) {
		return true, nil // it was removed meanwhile
	}
	if err != nil {
		return true, err
	}
	n.say(e, result)
	return true, nil
}

// say counts, and tells.
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

// remaining goes by how fast it went so far.
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

// inside is the directory of an entry that is to be diagnosed.
func (n *night) inside(e *corpus.Entry) string {
	return filepath.Join(n.Corpus.EntryDir(e.ID), filepath.FromSlash(e.Culprit))
}
