package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// A thread has one tracer (ptrace(2)), which is this one. The recorder detaches from a process
// that the program is about to trace itself: its recording ends there, and it runs as if it had
// never been recorded.

// leaving is a process from which the tracer is detaching.
type leaving struct {
	// asker is the thread that is about to trace the process, or the process's own thread that
	// asks to be traced. It is stopped at its question.
	asker *tracee
	regs  ptrace.Registers
}

const (
	tracedLimit   = "traced"
	tracedOutcome = "the program traces this process itself (ptrace) from here on"
)

// traced answers agent.TrapTraced.
func (t *tracer) traced(x *tracee, regs *ptrace.Registers) error {
	p := x.process
	if tid := int(int32(regs.Rdi)); tid != 0 {
		other := t.tracees.threads[tid]
		if other == nil || other.process == nil || other.process == p {
			return x.answer(regs, 0) // the kernel returns the error
		}
		p = other.process
	}
	if why := t.mustKeep(p, x); why != "" {
		t.warned.refuseTracing(p, x, why)
		return x.answer(regs, 0)
	}
	t.warned.warnOnce(&t.warned.traced, "process %d is not recorded any more: the program traces it itself (ptrace)", p.pid)
	p.leaving = &leaving{asker: x, regs: *regs}
	for _, other := range p.threads {
		if other != x && !other.stopped && !other.interrupted && !gone(other.tid) {
			other.interrupt()
		}
	}
	return t.maybeLeft(p)
}

// mustKeep says why the tracer cannot detach from a process that thread x wants to have traced;
// empty if it can. The recorder is the parent of the main process, and the user asked for that
// recording. The same applies to the ancestors of x's process: they have crash handlers that
// execute debuggers.
func (t *tracer) mustKeep(p *process, x *tracee) string {
	const traced = "it is recorded, and a process has one tracer"
	switch {
	case t.order.Hunt != nil, p == t.tracees.main, p.leaving != nil, p.ending != nil:
		return traced
	case p == x.process && t.tracees.processes[parentOf(p.pid)] == nil:
		return traced // no process of the program would trace it
	}
	for _, other := range p.threads {
		if other.vforking || other != x && other.stopped {
			return traced
		}
	}
	for pid, generations := parentOf(x.process.pid), 0; pid > 1 && generations < mostGenerations; generations++ {
		if pid == p.pid {
			return traced
		}
		pid = parentOf(pid)
	}
	return ""
}

// mostGenerations is the maximum length of a walk through parents, which end and change
// meanwhile.
const mostGenerations = 1000

// refuseTracing notes that a ptrace call of thread x fails.
func (w *warned) refuseTracing(p *process, x *tracee, why string) {
	text := fmt.Sprintf("the program cannot trace process %d (ptrace fails with EPERM): %s", p.pid, why)
	if r := x.process.recording; r != nil {
		r.limit("syscall", text)
	}
	w.warnOnce(&w.untraced, "%s", text)
}

// leave detaches from a thread that has stopped.
func (t *tracer) leave(x *tracee, stop ptrace.Stop) error {
	p := x.process
	signal := syscall.Signal(0)
	var err error
	switch stop.Kind {
	case ptrace.EventStop:
		switch {
		case isExec(stop):
			// Its recording ends with that, and the new program is recorded.
			return errors.Join(t.keepAfterAll(p), t.executed(x))
		case isFork(stop):
			err = t.made(x)
		}
	case ptrace.SignalStop:
		signal, err = x.lastSignal(stop.Signal)
	}
	if err == nil {
		x.releaseTimer()
		err = ptrace.Detach(x.tid, signal)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	if x.delay != nil {
		for _, d := range x.delay.signals {
			ptrace.Signal(p.pid, x.tid, d.signal)
		}
	}
	delete(t.tracees.threads, x.tid)
	delete(p.threads, x.tid)
	return t.maybeLeft(p)
}

// lastSignal returns the signal with which to detach from a thread that has stopped for signal
// s.
func (x *tracee) lastSignal(s syscall.Signal) (syscall.Signal, error) {
	info, err := x.siginfo(s)
	if err != nil || !isFault(s, &info) {
		return s, err
	}
	if step, _ := isStep(&info); step && s == unix.SIGTRAP && (x.delay != nil || x.seeking > 0) {
		return 0, nil
	}
	regs, err := ptrace.GetRegisters(x.tid)
	if err != nil {
		return 0, err
	}
	if isQuestion(x.tid, s, &info, &regs) {
		regs.Rax, regs.Orig_rax = 0, ^uint64(0)
		return 0, ptrace.SetRegisters(x.tid, &regs)
	}
	if r := x.process.recording; r != nil {
		redirected, err := sites.RedirectIn(r.memory, x.tid, s, &regs, &r.control, r.patches.IsTrap)
		if redirected || err != nil {
			return 0, err
		}
	}
	return s, nil
}

// maybeLeft ends the recording of a process of which only the asker is still traced, and
// answers the asker.
func (t *tracer) maybeLeft(p *process) error {
	l := p.leaving
	for _, x := range p.threads {
		if x != l.asker && !gone(x.tid) {
			return nil
		}
	}
	p.leaving = nil
	if r := p.recording; r != nil {
		if err := r.disown(); err != nil {
			return err
		}
		r.limit(tracedLimit, "the recording ends where "+tracedOutcome)
		r.close(record.Outcome{Kind: record.OutcomeCut, Text: tracedOutcome}, syscall.Rusage{})
		p.recording = nil
	}
	delete(t.tracees.processes, p.pid)
	for tid := range p.threads {
		delete(t.tracees.threads, tid)
	}
	if l.asker.process != p {
		return l.asker.answer(&l.regs, 1)
	}
	l.regs.Rax, l.regs.Orig_rax = 1, ^uint64(0)
	if err := ptrace.SetRegisters(l.asker.tid, &l.regs); err != nil {
		return err
	}
	return ptrace.Detach(l.asker.tid, 0)
}

// keepAfterAll handles a process that has executed a program, or has ended, before the tracer
// had detached from all of its threads.
func (t *tracer) keepAfterAll(p *process) error {
	l := p.leaving
	p.leaving = nil
	if l.asker.process == p {
		return nil // it has ended
	}
	err := l.asker.answer(&l.regs, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // killed, and its end is reported next
	}
	return err
}

// disown tells the engine that it has no tracer, and that its log has ended.
func (r *recording) disown() error {
	var c agent.RawControl
	for _, f := range []struct {
		at    uintptr
		value uint32
	}{{unsafe.Offsetof(c.Tracer), 0}, {unsafe.Offsetof(c.Stopped), agent.LimitTraced}} {
		if _, err := r.memory.WriteAt(binary.LittleEndian.AppendUint32(nil, f.value), int64(r.controlAt+uint64(f.at))); err != nil {
			return fmt.Errorf("its control page: %w", err)
		}
	}
	return nil
}
