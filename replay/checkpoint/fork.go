package checkpoint

import (
	"errors"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Fork makes a copy of a process, all of whose threads are stopped, for this thread of the tool. It sets the fields of copied as
// Continue does. The copy is confined: its threads can ask the kernel for no more than package checkpoint lists (confine.go). The
// other parameters and the error are those of Take.
func Fork(p, copied *tracee.Process, options int, text []tracee.Words) error {
	if _, err := p.InLibrary(0); err != nil { // looks up p.Library
		return err
	}
	c, forks, err := capture(p)
	if err != nil {
		return err
	}
	pid, err := forkStopped(p, forks, options, text)
	if err != nil {
		return err
	}
	if err := confine(pid, c.library); err != nil {
		return errors.Join(err, kill(pid))
	}
	return c.populate(copied, pid, options|ptrace.TraceSeccomp)
}

// Bury removes what the kernel keeps of a copy that Fork made of p, after its end: without it each would stay until the end of p, all of
// whose threads are stopped.
func Bury(p *tracee.Process, pid int) error {
	return Call(p, unix.SYS_WAIT4, uint64(pid), 0, unix.WALL|unix.WNOHANG, 0)
}

// Call makes a system call in a process that has been copied, or in a copy, all of whose threads are stopped.
func Call(p *tracee.Process, number uint64, args ...uint64) error {
	for _, t := range p.SortedThreads() {
		if !t.Stopped {
			continue // the first thread, which has ended
		}
		saved, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return err
		}
		caller, err := ptrace.NewCaller(t.TID, page)
		if err != nil {
			return err
		}
		_, err = caller.Call(number, args...)
		return errors.Join(err, ptrace.SetRegisters(t.TID, &saved))
	}
	return errors.New("checkpoint: no thread is stopped")
}
