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
	c, forks, err := capture(p, true)
	if err != nil {
		return err
	}
	if p.Copies%collapseEach == 0 {
		if err := collapse(p, forks); err != nil {
			return err
		}
	}
	p.Copies++
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
		_, err := CallIn(t.TID, number, args...)
		return err
	}
	return errors.New("checkpoint: no thread is stopped")
}

// CallIn is Call in a stopped thread, and returns the result.
func CallIn(tid int, number uint64, args ...uint64) (uint64, error) {
	saved, err := ptrace.GetRegisters(tid)
	if err != nil {
		return 0, err
	}
	caller, err := ptrace.NewCaller(tid, page)
	if err != nil {
		return 0, err
	}
	result, err := caller.Call(number, args...)
	return result, errors.Join(err, ptrace.SetRegisters(tid, &saved))
}
