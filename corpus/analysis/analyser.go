package analysis

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"sync/atomic"
)

// Options are the options of an Analyser.
type Options struct {
	// Version is the version of diagnose that Command runs.
	Version string
	// Command runs diagnose; "crash" and its flags are appended. Environ is added to this
	// process's environment.
	Command []string
	Environ []string
	// Scratch makes an empty directory for the output of a process; discard removes it.
	Scratch func() (dir string, discard func(), err error)
	// Confine restricts the processes; nil: they may do what this process may.
	Confine Confiner
}

// Confiner restricts what the process of an analysis can do: a replay runs the recorded program.
type Confiner interface {
	// Confine changes a command that was not started yet. read are the directories that its
	// process must be able to read, write is the one of its output. It fails with an
	// *UnsupportedError if this machine cannot restrict the process so.
	Confine(cmd *exec.Cmd, read []string, write string) error
}

// Enforcement is a way to enforce a budget of memory.
type Enforcement string

// The ways to enforce a budget of memory.
const (
	// MemoryGrouped: by the kernel, in a control group.
	MemoryGrouped Enforcement = "cgroup"
	// MemoryPolled: by a look ten times a second.
	MemoryPolled Enforcement = "polling"
)

// Analyser analyses failures, several at once if it is asked to.
type Analyser struct {
	Options
	groups *controlGroups // nil: there are none
	polled atomic.Bool    // memory is polled

	free atomic.Bool // processes are not confined

	mu    sync.Mutex
	why   string // no control group can be used
	loose string // processes are not confined, though they should be
}

// Open makes an Analyser. It uses control groups if this process may make any.
func Open(o Options) (*Analyser, error) {
	if len(o.Command) == 0 || o.Version == "" || o.Scratch == nil {
		return nil, errors.New("analysis: command, version or scratch is not set")
	}
	a := &Analyser{Options: o}
	a.free.Store(o.Confine == nil)
	groups, err := openControlGroups()
	if err != nil {
		a.poll(err)
		return a, nil
	}
	a.groups = groups
	return a, nil
}

// Close gives up the control groups. No analysis may run.
func (a *Analyser) Close() {
	if a.groups != nil {
		a.groups.close()
	}
}

// Enforcement returns how the budget of memory is enforced. If it is polled, why says why no
// control group can be used.
func (a *Analyser) Enforcement() (by Enforcement, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != "" {
		return MemoryPolled, a.why
	}
	return MemoryGrouped, ""
}

// poll continues without control groups.
func (a *Analyser) poll(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.polled.Store(true)
	a.why = why.Error()
}

// Confinement reports whether the processes are confined. why says why they are not, though they
// should be.
func (a *Analyser) Confinement() (confined bool, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.free.Load(), a.loose
}

// confined runs a process with the restrictions or, if the machine does not allow them, without.
func (a *Analyser) confined(ctx context.Context, p process, f Failure) (*ending, error) {
	if a.free.Load() {
		return a.bounded(ctx, p)
	}
	restricted := p
	restricted.confine = func(cmd *exec.Cmd) error { return a.Confine.Confine(cmd, f.Needed, p.dir) }
	end, err := a.bounded(ctx, restricted)
	var start *startError
	if !errors.As(err, &start) {
		return end, err
	}
	end, again := a.bounded(ctx, p)
	if !errors.As(again, &start) { // the restrictions were the reason
		a.mu.Lock()
		defer a.mu.Unlock()
		a.free.Store(true)
		a.loose = err.Error()
	}
	return end, again
}

// bounded runs a process in its own control group, or without one if none can be made.
func (a *Analyser) bounded(ctx context.Context, p process) (*ending, error) {
	if a.polled.Load() {
		return p.runToEnd(ctx)
	}
	group, err := a.groups.new(p.memory)
	if err == nil {
		defer group.close()
		p.group = group
		var end *ending
		var start *startError
		if end, err = p.runToEnd(ctx); !errors.As(err, &start) {
			return end, err
		}
		p.group = nil
	}
	end, again := p.runToEnd(ctx)
	var start *startError
	if !errors.As(again, &start) { // the group was the reason
		a.poll(err)
	}
	return end, again
}
