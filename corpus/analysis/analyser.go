package analysis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the options of an Analyser.
type Options struct {
	// Version is the version of diagnose that Command runs.
	Version string
	// Command runs diagnose; "crash" and its flags are appended. Environ is added to this
	// process's environment.
	Command []string
	Environ []string
	// Time and Memory are the limits for each process with its descendants, Memory in bytes.
	Time   time.Duration
	Memory int64
	// Scratch makes an empty directory for the output of a process; discard removes it.
	Scratch func() (dir string, discard func(), err error)
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

	mu  sync.Mutex
	why string // no control group can be used
}

// Open makes an Analyser. It uses control groups if this process may make any.
func Open(o Options) (*Analyser, error) {
	if o.Time <= 0 || o.Memory <= 0 || len(o.Command) == 0 || o.Version == "" || o.Scratch == nil {
		return nil, errors.New("analysis: time, memory, command, version or scratch is not set")
	}
	a := &Analyser{Options: o}
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
