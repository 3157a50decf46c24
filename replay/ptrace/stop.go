package ptrace

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/internal/wording"
)

// Kind is the kind of a stop.
type Kind int

// The kinds of stops of seized threads (ptrace(2)).
const (
	// Ended: the thread, or the process if it is its first thread, has ended. Status says how.
	// There is nothing to resume.
	Ended Kind = iota + 1
	// SignalStop: Signal is about to be delivered; Cont passes it on.
	SignalStop
	// GroupStop: job control stopped the process with Signal; call Listen.
	GroupStop
	// Interrupted: an Interrupt, the first stop of a new thread or process,
	// or the end of a group stop; Cont with 0.
	Interrupted
	// EventStop: Event is one of unix.PTRACE_EVENT_...; Cont with 0.
	EventStop
	// CallStop: a system call begins or has ended in a thread that was resumed by ContToCall;
	// GetCall says which.
	CallStop
	// JobStop: a process that is not traced was stopped by Signal.
	JobStop
)

// Stop is a stop of a thread as wait4 reports it.
type Stop struct {
	TID    int
	Kind   Kind
	Signal syscall.Signal
	Event  int
	Status syscall.WaitStatus
	// Usage is the resource usage of a process that has Ended.
	Usage syscall.Rusage
}

func (s Stop) String() string {
	switch s.Kind {
	case Ended:
		if s.Status.Signaled() {
			return "its end by " + wording.Signal(int(s.Status.Signal()))
		}
		return fmt.Sprintf("its end with status %d", s.Status.ExitStatus())
	case CallStop:
		return "a system call"
	case EventStop:
		return fmt.Sprintf("event %d", s.Event)
	case Interrupted:
		return "an interruption"
	}
	return wording.Signal(int(s.Signal))
}

// Wait waits for any stop of any thread or child of this OnThread. The error unix.ECHILD says that
// none is left.
func Wait() (Stop, error) { return wait(-1, noThread) }

// Poll is Wait without waiting; found is false if there is nothing to report.
func Poll() (stop Stop, found bool, err error) {
	stop, err = wait(-1, noThread|unix.WNOHANG)
	return stop, stop.TID != 0, err
}

// WaitFor waits for the next stop of one thread.
func WaitFor(tid int) (Stop, error) { return wait(tid, 0) }

// PollFor is WaitFor without waiting; found is false if there is nothing to report.
func PollFor(tid int) (stop Stop, found bool, err error) {
	stop, err = wait(tid, unix.WNOHANG)
	return stop, stop.TID != 0, err
}

// WaitJob waits for a child that is not traced to end or to be stopped.
func WaitJob(pid int) (Stop, error) { return wait(pid, unix.WUNTRACED) }

// noThread is __WNOTHREAD: children of this process's other threads (os/exec, another OnThread)
// are not waited for here.
const noThread = 0x20000000

func wait(tid, flags int) (Stop, error) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		got, err := syscall.Wait4(tid, &status, syscall.WALL|flags, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Stop{}, fmt.Errorf("wait for thread %d: %w", tid, err)
		}
		if got == 0 {
			return Stop{}, nil
		}
		stop := classify(got, status, flags&unix.WUNTRACED != 0)
		stop.Usage = usage
		return stop, nil
	}
}

// callSignal is the signal that wait4 reports for a CallStop (PTRACE_O_TRACESYSGOOD).
const callSignal = unix.SIGTRAP | 0x80

// classify decodes a status. The event is in its third byte; PTRACE_EVENT_STOP is a group stop if
// the signal is one that stops (ptrace(2), "Group-stop").
func classify(tid int, status syscall.WaitStatus, untraced bool) Stop {
	s := Stop{TID: tid, Status: status}
	if !status.Stopped() {
		s.Kind = Ended
		return s
	}
	s.Signal = status.StopSignal()
	event := int(status) >> 16
	stops := s.Signal == unix.SIGSTOP || s.Signal == unix.SIGTSTP || s.Signal == unix.SIGTTIN || s.Signal == unix.SIGTTOU
	switch {
	case event == unix.PTRACE_EVENT_STOP && stops:
		s.Kind = GroupStop
	case event == unix.PTRACE_EVENT_STOP:
		s.Kind = Interrupted
	case event != 0:
		s.Kind, s.Event = EventStop, event
	case s.Signal == callSignal:
		s.Kind, s.Signal = CallStop, unix.SIGTRAP
	case untraced:
		s.Kind = JobStop
	default:
		s.Kind = SignalStop
	}
	return s
}
