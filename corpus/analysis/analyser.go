package analysis

import (
	"context"
	"errors"
	"fmt"
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
	// Confine changes a command that was not started yet; release is called after its end. It
	// fails with an *UnsupportedError if this machine cannot restrict processes so. Another error
	// is of these files: they cannot be analysed under the restrictions.
	Confine(ctx context.Context, cmd *exec.Cmd, v View) (release func(), err error)
}

// View is what a confined process must see.
type View struct {
	// Files are directories that it reads. Recordings are those of them that it replays.
	Files, Recordings []string
	// Output is the directory that it writes to.
	Output string
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

	mu    sync.Mutex
	why   string // no control group can be used
	loose string // why processes could not be confined, though they should be
}

// Open makes an Analyser. It uses control groups if this process may make any.
func Open(o Options) (*Analyser, error) {
	if len(o.Command) == 0 || o.Version == "" || o.Scratch == nil {
		return nil, errors.New("analysis: command, version or scratch is not set")
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

// Confinement reports whether the processes are confined. why says why some could not be, though
// they should: then recordings were not replayed, and cores were read without restrictions.
func (a *Analyser) Confinement() (confined bool, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Confine != nil && a.loose == "", a.loose
}

// statusNotEntered is the exit status of a process that could not enter its confinement: that of
// a shell that cannot execute.
const statusNotEntered = 126

// confined runs a process with the restrictions. If the machine does not allow them, a recording is
// not replayed, for that executes what its sender chose: the error is a *confineError, as for files
// that cannot be confined. A core is only read, so it is read without them.
func (a *Analyser) confined(ctx context.Context, p process, needed []string, replays bool) (*ending, error) {
	if a.Confine == nil {
		return a.bounded(ctx, p)
	}
	view := View{Files: needed, Output: p.dir}
	if replays {
		view.Recordings = needed
	}
	restricted := p
	restricted.confine = func(cmd *exec.Cmd) (func(), error) { return a.Confine.Confine(ctx, cmd, view) }
	end, err := a.bounded(ctx, restricted)
	var no *UnsupportedError
	var start *startError
	switch {
	case errors.As(err, &no), errors.As(err, &start):
	case err == nil && end.status == statusNotEntered:
		err = errors.New(why(end))
	default:
		return end, err
	}
	if replays {
		a.unconfined(err)
		return nil, &confineError{fmt.Errorf("replays cannot be confined here: %w", err)}
	}
	end, again := a.bounded(ctx, p)
	if !errors.As(again, &start) { // the restrictions were the reason
		a.unconfined(err)
	}
	return end, again
}

// unconfined notes why the machine does not allow the restrictions.
func (a *Analyser) unconfined(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loose = short(why.Error())
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
