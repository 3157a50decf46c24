package recorder

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

// ending is a process that is stopped so that its core can be written. The tracer does not wait
// for it in one place: meanwhile other processes continue, and a thread may depend on them.
type ending struct {
	thread *tracee // the one that ends the process; it is stopped
	then   func() error
	done   bool
}

// stopAll stops all threads of a process but x, which is stopped, and then calls the function.
// The stops that they report meanwhile are held until release.
func (t *tracer) stopAll(x *tracee, then func() error) error {
	p := x.process
	p.ending = &ending{thread: x, then: then}
	p.recording.number(p)
	for _, other := range p.threads {
		if other == x || other.stopped || other.vforking || other.interrupted || gone(other.tid) {
			continue
		}
		other.interrupt()
	}
	return t.maybeCore(p)
}

// hold holds the stop of a thread while its process is about to end.
func (t *tracer) hold(x *tracee, stop ptrace.Stop) error {
	x.releaseTimer()
	switch stop.Kind {
	case ptrace.Interrupted:
	case ptrace.EventStop:
		switch {
		case isExec(stop):
			// Only this thread is left. The thread that was about to end the process no longer
			// exists.
			x.process.ending = nil
			return t.deal(x, stop)
		case isFork(stop):
			// Its child must also be stopped if it is a thread of this process.
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

// holdSignal handles a signal to a thread of such a process: after a step, from the engine, or
// one to deliver if the process does not end after all.
func (t *tracer) holdSignal(x *tracee, stop *ptrace.Stop) error {
	info, err := x.siginfo(stop.Signal)
	if err != nil {
		return err
	}
	if !isFault(stop.Signal, &info) {
		if x.delay == nil {
			x.delay = &delay{since: time.Now()}
		}
		x.delay.addSignal(stop.Signal, info)
		return nil
	}
	if step, _ := isStep(&info); step && stop.Signal == unix.SIGTRAP && (x.settling != nil || x.delay != nil || x.seeking > 0) {
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
		x.interrupt()
		return nil
	}
	x.held = stop
	return nil
}

// maybeCore continues the end of a process once all its threads are at places that a replay can
// find again.
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
	moving, err := p.unsettled()
	if err != nil {
		return err
	}
	if len(moving) != 0 {
		return p.recording.settleThreads(moving)
	}
	e.done = true
	return e.then()
}

// release continues a process that does not end after all, thread x with a signal.
func (t *tracer) release(x *tracee, s syscall.Signal) error {
	p := x.process
	p.ending = nil
	for _, other := range p.threads {
		other.settling = nil
	}
	if err := x.proceed(s); err != nil {
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

// gone reports whether a thread has ended without a report: this is so for a process's first
// thread as long as others live.
func gone(tid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return true
	}
	// The state follows the name, which is in parentheses and may contain some.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// asRegsets lets the writer of cores read registers.
type asRegsets struct{}

func (asRegsets) Regset(tid int, note uint32) ([]byte, error) {
	return ptrace.GetRegset(tid, int(note))
}
