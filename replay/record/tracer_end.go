package record

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

// ending is a process that is stopped for its core to be written. It is not
// waited for in one place: other processes go on meanwhile, and a thread may
// depend on them.
type ending struct {
	thread *tracee // the one that ends the process; it stands in a stop
	then   func() error
	done   bool
}

// stopAll stops all threads of a process but x, which stands in a stop, and
// calls then. What they report meanwhile is held until release.
func (t *tracer) stopAll(x *tracee, then func() error) error {
	p := x.process
	p.ending = &ending{thread: x, then: then}
	p.recording.number(p)
	for _, other := range p.threads {
		if other == x || other.stopped || other.vforking || other.interrupted || gone(other.tid) {
			continue
		}
		t.interrupt(other)
	}
	return t.maybeCore(p)
}

// interrupt asks a thread to stop.
func (t *tracer) interrupt(x *tracee) {
	if ptrace.Interrupt(x.tid) == nil { // else it ends just now
		x.interrupted = true
	}
}

// hold keeps what a thread reports while its process is at its end.
func (t *tracer) hold(x *tracee, stop ptrace.Stop) error {
	switch stop.Kind {
	case ptrace.Interrupted:
	case ptrace.EventStop:
		switch {
		case isExec(stop):
			// Only this thread is left; the one at its end is no more.
			x.process.ending = nil
			return t.deal(x, stop)
		case isFork(stop):
			// Its child must be stopped as well, if it is of this process.
			x.vforking = isVFork(stop)
			if err := t.made(x); err != nil {
				return err
			}
		}
	case ptrace.SignalStop:
		if err := t.holdSignal(x, &stop); err != nil {
			return err
		}
	default:
		x.held = &stop
	}
	return t.maybeCore(x.process)
}

// holdSignal is for a signal to a thread of such a process: behind a step, from
// the engine, or one that is to be given if the process does not end after all.
func (t *tracer) holdSignal(x *tracee, stop *ptrace.Stop) error {
	info, err := ptrace.GetSiginfo(x.tid)
	if err != nil {
		return err
	}
	if !isFault(stop.Signal, &info) {
		if x.delay == nil {
			x.delay = &delay{since: time.Now()}
		}
		x.delay.add(stop.Signal, info)
		return nil
	}
	if step, _ := isStep(&info); step && stop.Signal == unix.SIGTRAP && (x.settling != nil || x.delay != nil) {
		return nil
	}
	regs, err := ptrace.GetRegisters(x.tid)
	if err != nil {
		return err
	}
	if isQuestion(x.tid, stop.Signal, &info, &regs) && regs.Rax != agent.TrapExit {
		if err := t.trapped(x, &regs); err != nil {
			return err
		}
		t.interrupt(x)
		return nil
	}
	x.held = stop
	return nil
}

// maybeCore goes on with the end of a process if all its threads stand where
// they can be found again.
func (t *tracer) maybeCore(p *process) error {
	e := p.ending
	if e.done {
		return nil
	}
	for _, x := range p.threads {
		if !x.stopped && !x.vforking && !gone(x.tid) {
			return nil
		}
	}
	moving, err := t.unsettled(p)
	if err != nil {
		return err
	}
	if len(moving) != 0 {
		return t.settle(p.recording, moving)
	}
	e.done = true
	return e.then()
}

// release lets a process go on that does not end after all, thread x with a
// signal.
func (t *tracer) release(x *tracee, s syscall.Signal) error {
	p := x.process
	p.ending = nil
	for _, other := range p.threads {
		other.settling = nil
	}
	if err := t.proceed(x, s); err != nil {
		return err
	}
	for _, other := range p.threads {
		if other == x || !other.stopped {
			continue
		}
		stop := other.held
		other.held = nil
		if stop == nil {
			stop = &ptrace.Stop{TID: other.tid, Kind: ptrace.Interrupted}
		}
		if err := t.deal(other, *stop); err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether a thread has ended without that its end was reported: a
// process's first thread, as long as others live.
func gone(tid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return true
	}
	// The state stands behind the name, which is in parentheses and may hold some.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// asRegsets lets the writer of cores read registers.
type asRegsets struct{}

func (asRegsets) Regset(tid int, note uint32) ([]byte, error) {
	return ptrace.GetRegset(tid, int(note))
}
