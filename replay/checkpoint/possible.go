package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/internal/procmaps"
	"diagnose/internal/signalsets"
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
func checkPossible(p *tracee.Process) error {
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
	if err := checkFiles(p.PID); err != nil {
		return err
	}
	return checkMappings(p.PID)
}

// checkPending looks for signals that wait for a thread: a fork has none.
func checkPending(t *tracee.Thread) error {
	sets, err := signalsets.Read(t.TID)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if pending := (sets.Pending | sets.SharedPending) &^ signalsets.Of(unix.SIGSTOP); pending != 0 {
		return impossible("signals %#x wait for thread %d", pending, t.Index)
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

// checkMappings looks for memory that a fork shares or does not have.
func checkMappings(pid int) error {
	areas, err := procmaps.ReadAreas(pid)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for i := range areas {
		switch a := &areas[i]; {
		case a.Shared():
			return impossible("the program has shared memory at %v", a.Start)
		case a.Has("dc") || a.Has("wf"):
			return impossible("a child has no memory at %v (madvise)", a.Start)
		}
	}
	return nil
}
