package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/procmaps"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// ImpossibleError says why a process cannot be copied as it is. The replay itself can continue.
type ImpossibleError struct{ Why string }

func (e *ImpossibleError) Error() string { return "replay: no checkpoint is possible here: " + e.Why }

func impossible(format string, args ...any) error {
	return &ImpossibleError{fmt.Sprintf(format, args...)}
}

// checkPossible returns an *ImpossibleError if a fork of the process, with all its threads stopped, would differ from it.
// confined: the copy cannot use its files.
func checkPossible(p *tracee.Process, confined bool) error {
	if p.Protection != nil {
		return impossible("pages are protected")
	}
	for _, t := range p.Threads {
		d := t.Deferred
		switch {
		case d == nil || d.Kind == ptrace.Interrupted || d.Kind == ptrace.SignalStop && d.Signal == unix.SIGSTOP:
		default:
			return impossible("thread %d came to %v meanwhile", t.Index, d)
		}
		if !t.Stopped {
			continue // the first thread, which has ended
		}
		if err := checkPending(t); err != nil {
			return err
		}
	}
	if !confined {
		if err := checkFiles(p.PID); err != nil {
			return err
		}
	}
	return checkMappings(p)
}

// checkPending looks for signals that wait for a thread: a fork has none.
func checkPending(t *tracee.Thread) error {
	pending, err := ptrace.Pending(t.TID)
	if err != nil {
		return err
	}
	for _, signal := range pending {
		if signal != unix.SIGSTOP {
			return impossible("signal %d waits for thread %d", signal, t.Index)
		}
	}
	return nil
}

// checkFiles looks for the engine's files in memory, which a fork shares.
func checkFiles(pid int) error {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, f := range files {
		if target, err := os.Readlink(f); err == nil && strings.HasPrefix(target, "/memfd:") {
			return impossible("the program has mapped a file as shared memory")
		}
	}
	return nil
}

// checkMappings looks for memory that a fork shares or does not have. Only smaps has the advice that the program gave for forks, and takes
// as long to read as a fork takes.
func checkMappings(p *tracee.Process) error {
	control, err := p.ReadControl()
	if err != nil {
		return err
	}
	if control.ForkAdvice == agent.ForkHasAll {
		maps, err := procmaps.OpenQueries(p.PID)
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		defer maps.Close()
		q, found, err := procmaps.Find(maps, 0, procmaps.SharedFlag|procmaps.OrNext)
		for err == nil && found && p.SharesWithTool(q.Start) {
			q, found, err = procmaps.Find(maps, q.End, procmaps.SharedFlag|procmaps.OrNext)
		}
		if err == nil && found {
			return impossible("the program has shared memory at %#x", q.Start)
		}
		if err == nil {
			return nil
		}
	}
	areas, err := procmaps.ReadAreas(p.PID)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for i := range areas {
		switch a := &areas[i]; {
		case a.Shared() && p.SharesWithTool(uint64(a.Start)):
		case a.Shared():
			return impossible("the program has shared memory at %v", a.Start)
		case a.Has("dc") || a.Has("wf"):
			return impossible("a child has no memory at %v (madvise)", a.Start)
		}
	}
	return nil
}
