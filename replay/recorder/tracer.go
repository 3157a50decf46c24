package recorder

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/schedule"
)

// tracer records a program and all processes that it creates. It stops them only when they
// receive signals, create processes or threads, execute programs, or ask.
type tracer struct {
	order   *order
	link    *link
	run     *run
	tracees tracees
	// streams are the program's streams in a hunt; nil: those of this process.
	streams []uintptr
	// serves: the program becomes a fork server as soon as it can. server is the current one.
	serves bool
	server *forkServer
	warned warned
}

// tracingOptions: the program should outlive the tracer, so there is no PTRACE_O_EXITKILL.
const tracingOptions = ptrace.TraceFork | ptrace.TraceVFork | ptrace.TraceClone | ptrace.TraceExec | ptrace.TraceVForkDone

// trace records a program until it and all its processes have ended.
func trace(o *order, l *link) (err error) {
	holdSignals(o.Ignored)
	t := &tracer{order: o, link: l, warned: warned{link: l}, tracees: newTracees()}
	if t.run, err = newRun(o); err != nil {
		return err
	}
	t.run.warn = func(text string) { l.tell(notice{Warning: text}) }
	t.run.tellAnalysis = l.analysing
	return ptrace.OnThread(t.trace)
}

// trace is called in ptrace.OnThread.
func (t *tracer) trace() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("record: the tracer failed: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			t.run.abandon()
		}
	}()
	if err := t.start(); err != nil {
		return err
	}
	if h := t.order.Hunt; h != nil && t.streams != nil {
		schedule.ShareProcessor(h)
	}
	return t.loop()
}

// holdSignals: a signal sent to all processes (a shutdown) is for the program alone, and the
// tracer waits for the program's end. If the tracer ignored the signal, the program would
// inherit that.
func holdSignals(ignored []int) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)
	go func() {
		for range caught {
		}
	}()
	for _, n := range ignored {
		signal.Ignore(syscall.Signal(n))
	}
}

func (t *tracer) start() error {
	if t.server != nil {
		return t.startFork()
	}
	program := &launch.Launch{Path: string(t.order.Path), Args: record.Strings(t.order.Args), Environ: record.Strings(t.order.Environ), Random: t.run.random,
		Files: []uintptr{0, 1, 2}, Options: tracingOptions}
	begin := t.order.apart
	if t.streams != nil {
		program.Files, program.Options = t.streams, tracingOptions|ptrace.ExitKill
		begin = func(start func() (int, error)) (int, error) { return start() }
	}
	pid, err := begin(program.Start)
	var unsupported *launch.UnsupportedError
	if err != nil && !errors.As(err, &unsupported) {
		err = &launch.StartError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := refuseRandomised(pid); err != nil {
		launch.Discard(pid)
		return err
	}
	// The program's streams must not be open here: a pipe ends when the program closes them.
	if t.streams == nil {
		if err := closeStreams(); err != nil {
			return err
		}
	}
	t.tracees.main = t.tracees.newProcess(pid, &ancestor{})
	t.run.main = t.tracees.main.pid
	t.tracees.threads[pid].stopped = true
	t.link.tell(notice{Started: pid})
	return t.tracees.threads[pid].proceed(0)
}

// refuseRandomised checks a program that has been started and has executed nothing.
func refuseRandomised(pid int) error {
	why, err := randomised(pid)
	if err != nil {
		return fmt.Errorf("record: process %d: %w", pid, err)
	}
	if why == "" {
		return nil
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return &launch.StartError{Err: fmt.Errorf("record: %s %s", name, why)}
}

// apart starts the program in the launcher's process group and then leaves the session. The
// kernel counts a parent in another group of the same session as a process that can continue a
// stopped group, and sends SIGHUP to the group when the last such parent ends (kernel/exit.c,
// kill_orphaned_pgrp). For the program it would matter that its parent is this process. A
// parent in another session does not count, and signals to the group or from the terminal do
// not reach it.
func (o *order) apart(start func() (int, error)) (int, error) {
	if o.Group != 0 {
		if err := unix.Setpgid(0, o.Group); err != nil {
			return 0, fmt.Errorf("record: the launcher's process group: %w", err)
		}
	}
	pid, err := start()
	if err != nil {
		return 0, err
	}
	if _, err := unix.Setsid(); err != nil {
		unix.Kill(pid, unix.SIGKILL)
		return 0, fmt.Errorf("record: setsid: %w", err)
	}
	return pid, nil
}

func closeStreams() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for n := range 3 {
		if err := unix.Dup3(int(null.Fd()), n, 0); err != nil {
			return fmt.Errorf("record: standard streams: %w", err)
		}
	}
	return nil
}

func (t *tracer) loop() error {
	for {
		if t.server != nil && t.server.stands && len(t.tracees.processes) == 0 && len(t.tracees.threads) == 0 {
			return t.run.finish()
		}
		stop, err := t.wait()
		if errors.Is(err, unix.ECHILD) {
			return t.run.finish()
		}
		if err != nil {
			return err
		}
		if err := t.handle(stop); err != nil && !errors.Is(err, unix.ESRCH) {
			return err // ESRCH: it was killed, and its end is reported next
		}
	}
}

// handle handles one stop.
func (t *tracer) handle(stop ptrace.Stop) error {
	if t.server != nil && stop.TID == t.server.pid {
		return t.serverStopped(stop)
	}
	x := t.tracees.threads[stop.TID]
	if stop.Kind == ptrace.Ended {
		return t.ended(x, stop)
	}
	if x == nil || x.process == nil {
		// The stop of its maker comes next, and finds it here.
		x = &tracee{tid: stop.TID, stopped: true, parent: parentOf(stop.TID)}
		t.tracees.threads[stop.TID] = x
		return t.tracees.adopt(x)
	}
	x.stopped, x.interrupted = true, false
	if stop.Kind == ptrace.EventStop && stop.Event == unix.PTRACE_EVENT_VFORK_DONE {
		x.vforking = false
	}
	if x.process.leaving != nil {
		return t.leave(x, stop)
	}
	if e := x.process.ending; e != nil && x != e.thread {
		return t.hold(x, stop)
	}
	return t.deal(x, stop)
}

// deal is handle for a thread whose process is not about to end.
func (t *tracer) deal(x *tracee, stop ptrace.Stop) error {
	switch stop.Kind {
	case ptrace.SignalStop:
		return t.signalled(x, stop.Signal)
	case ptrace.GroupStop:
		if x.process == t.tracees.main && x.tid == t.tracees.main.pid {
			t.link.tell(notice{Stopped: int(stop.Signal)})
		}
		x.stopped = false
		return ptrace.Listen(x.tid)
	case ptrace.Interrupted:
		if x.delay != nil {
			if sent, err := x.resend(); err != nil || sent {
				return err
			}
		}
		if x.process == t.tracees.main && x.tid == t.tracees.main.pid && x.delay == nil && !x.holding {
			t.link.tell(notice{Resumed: true})
		}
	case ptrace.EventStop:
		return t.event(x, stop)
	}
	return x.proceed(0)
}

func (t *tracer) event(x *tracee, stop ptrace.Stop) error {
	switch {
	case isFork(stop):
		x.vforking = isVFork(stop)
		if err := t.made(x); err != nil {
			return err
		}
	case isExec(stop):
		return t.executed(x)
	}
	return x.proceed(0)
}

func isVFork(stop ptrace.Stop) bool { return stop.Event == unix.PTRACE_EVENT_VFORK }

func isExec(stop ptrace.Stop) bool { return stop.Event == unix.PTRACE_EVENT_EXEC }

func isFork(stop ptrace.Stop) bool {
	return stop.Event == unix.PTRACE_EVENT_CLONE || stop.Event == unix.PTRACE_EVENT_FORK || isVFork(stop)
}

// made handles a thread that has created another thread, or a process.
func (t *tracer) made(x *tracee) error {
	message, err := ptrace.EventMessage(x.tid)
	if err != nil {
		return err
	}
	tid := int(message)
	var child *tracee
	if unix.Access(fmt.Sprintf("/proc/%d/task/%d", x.process.pid, tid), unix.F_OK) == nil {
		child = t.tracees.thread(tid, x.process)
	} else {
		child = t.tracees.newProcess(tid, x.process.ancestorOf(x)).threads[tid]
	}
	if !child.stopped {
		return nil // its first stop will follow
	}
	if child.process.ending != nil {
		return nil
	}
	return child.proceed(0)
}

// executed handles a process that executes another program. Of its threads only one is left,
// whose id is now that of the process.
func (t *tracer) executed(x *tracee) error {
	p := x.process
	for tid := range p.threads {
		if tid != p.pid {
			delete(p.threads, tid)
			delete(t.tracees.threads, tid)
		}
	}
	if err := t.tracees.adoptAll(p.pid); err != nil {
		return err
	}
	x.vforking, x.interrupted, x.delay, x.index = false, false, nil, 0
	p.pacer.executed()
	if r := p.recording; r != nil {
		p.from = &ancestor{recording: r, link: record.Parent{PID: p.pid, Exec: true}}
		r.close(record.Outcome{Kind: record.OutcomeExec}, syscall.Rusage{})
		p.recording = nil
		// The engine made the time-stamp counter trap, and that is inherited.
		if _, err := ptrace.SystemCall(x.tid, unix.SYS_PRCTL, unix.PR_SET_TSC, unix.PR_TSC_ENABLE); err != nil {
			return err
		}
	} else if p.from.recording != nil {
		p.from.link.Exec = true
		if _, err := ptrace.SystemCall(x.tid, unix.SYS_PRCTL, unix.PR_SET_TSC, unix.PR_TSC_ENABLE); err != nil {
			return err
		}
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil {
		p.program = record.Text(exe)
	}
	if why := unrecordable(p.pid); why != "" {
		return t.letGo(x, why)
	}
	if err := launch.Normalise(p.pid, t.run.random); err != nil {
		return err
	}
	return x.proceed(0)
}

// letGo ends the tracing of a process that cannot be recorded.
func (t *tracer) letGo(x *tracee, why string) error {
	p := x.process
	if r := p.from.recording; r != nil {
		r.limit("child", fmt.Sprintf("process %d is not recorded: %s", p.pid, why))
		if p != t.tracees.main && !r.run.quiet() {
			t.warned.warnOnce(&t.warned.unrecorded, "process %d, a child, is not recorded, and how it ends is not known: %s", p.pid, why)
		}
	}
	if p == t.tracees.main { // its end is reported all the same, as it is a child of ours
		t.link.warn("it is not recorded: %s", why)
		p.from.untraced = why
	} else {
		delete(t.tracees.threads, x.tid)
		delete(t.tracees.processes, p.pid)
	}
	return ptrace.Detach(x.tid, 0)
}

// ended handles a thread, or a whole process, that has ended.
func (t *tracer) ended(x *tracee, stop ptrace.Stop) error {
	delete(t.tracees.threads, stop.TID)
	if x == nil || x.process == nil {
		return nil
	}
	p := x.process
	delete(p.threads, x.tid)
	if x.tid != p.pid {
		switch {
		case p.leaving != nil:
			return t.maybeLeft(p)
		case p.ending != nil:
			return t.maybeCore(p)
		}
		return nil
	}
	if p.leaving != nil {
		if err := t.keepAfterAll(p); err != nil {
			return err
		}
	}
	delete(t.tracees.processes, p.pid)
	p.pacer.ended()
	outcome := p.outcome(stop.Status)
	if p.recording != nil {
		p.recording.close(outcome, stop.Usage)
	} else if r := p.from.recording; r != nil && outcome.Failed() {
		r.addUnrecorded(record.Unrecorded{PID: p.pid, Program: p.program, Outcome: outcome})
	}
	if err := t.tracees.adoptAll(p.pid); err != nil {
		return err
	}
	if p == t.tracees.main {
		return t.mainEnded(stop.Status, outcome)
	}
	return nil
}
