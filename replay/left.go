package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Left is a Copy that has left the recording for good: it continues as the program would, with all its threads, and stops for a debugger. One
// thread runs at a time; which one, the engine decides as in a FreeRequest. It is used as the Copy is.
type Left struct {
	x *Copy
	// interrupt asks for a stop; asked: the debugger does, and not the end of a thread's turn.
	interrupt Interruption
	asked     atomic.Bool
	plan      LeftPlan
	stop      LeftStop
	// caught: the signal of the stop has a handler, which has not been called yet.
	caught bool
	// changed is the thread whose registers were changed since the stop; 0: none.
	changed uint32
	// over is why it cannot continue; nil: it can.
	over error
}

// LeftPlan says how a Left continues.
type LeftPlan struct {
	// Breakpoints, Watches and Step are used.
	DebugPlan
	// StopsAt reports whether the process stops at a fault that has a handler, before the handler.
	StopsAt func(signal int) bool
	// Deliver: the signal at which the process has stopped takes its course.
	Deliver bool
}

// LeftStop is where and why a Left has stopped.
type LeftStop struct {
	// Kind is StopBreakpoint, StopStep, StopWatch or StopInterrupt; StopEnd: the signal came, or the process cannot continue.
	Kind   StopKind
	Thread uint32
	PC     evidence.Addr
	// Watch is the index of the watch in the plan.
	Watch  int
	Signal int
}

// leftTurn is how long a thread computes while another one is held in the program, for which it may wait in a loop.
const leftTurn = time.Second

// leftComputing bounds how long a Left computes without an event. The debugger has a shorter bound.
const leftComputing = time.Hour

// Leave lets a copy leave the recording, with the changes made in it. thread is the one at which the process has stopped. Functions are then
// called by the debugger alone. The error is ErrCopyOver where a call has not returned.
func (x *Copy) Leave(thread uint32) (*Left, error) {
	if x.over {
		return nil, ErrCopyOver
	}
	if x.thread == nil {
		t := x.c.ThreadNumbered(thread)
		if inside, err := x.inEngine(t); err != nil {
			return nil, err
		} else if inside {
			x.thread = t
		} else if err := x.take(thread, nil); err != nil {
			return nil, err
		}
	}
	c := x.c
	l := &Left{x: x}
	c.request.debug = &Debugging{Interrupt: &l.interrupt, OnStop: l.stopped}
	c.debugging, c.departed = newDebugging(c, c.request.debug), l
	c.stepper = c.debugging.newStepper()
	c.breaks = newBreaks(c.Process, c.Recordings, nil)
	c.judge.computing = leftComputing
	if c.Traps == nil {
		c.UseTraps()
	}
	if err := x.holdOthers(); err != nil {
		return nil, err
	}
	if err := c.StopAll(); err != nil {
		return nil, err
	}
	control, err := c.ReadControl()
	if err != nil {
		return nil, err
	}
	control.FreeMost = 0 // any number of events
	if err := c.WriteControl(control); err != nil {
		return nil, err
	}
	x.ran, x.over = true, true // for Call and Run
	return l, l.wake()
}

// wake gives the right to run to the thread if it waits for that in the engine.
func (l *Left) wake() error {
	x := l.x
	inside, err := x.inEngine(x.thread)
	if !inside || err != nil {
		return err
	}
	r, err := x.c.ReadThread(x.thread.Index)
	if err != nil {
		return err
	}
	const run = 1 // DG_GO_RUN of agent/src/engine/turn.c
	r.Go = run
	return x.c.WriteThread(x.thread.Index, r)
}

// inEngine reports whether a stopped thread is in the recording library's engine, or has not begun there, so that its registers cannot be changed.
func (x *Copy) inEngine(t *tracee.Thread) (bool, error) {
	if t == nil {
		return false, errors.New("replay: a copy of the process has no such thread")
	}
	control, err := x.c.ReadControl()
	if err != nil {
		return false, err
	}
	r, err := x.c.ReadThread(t.Index)
	if err != nil || r.RealTID == 0 {
		return true, err
	}
	if t.Final != nil {
		return t.Final.Regs.Rip >= control.TextLow && t.Final.Regs.Rip < control.TextHigh, nil
	}
	if r.Inside != 0 {
		return true, nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	return regs.Rip >= control.TextLow && regs.Rip < control.TextHigh, err
}

// stopped is Debugging.OnStop.
func (l *Left) stopped(d *DebugStop) (DebugPlan, error) {
	l.x.thread = d.thread
	l.stop = LeftStop{Kind: d.Kind, Watch: d.Watch}
	return DebugPlan{}, ErrEnough
}

// Interrupt asks for a stop of Continue, from any goroutine.
func (l *Left) Interrupt() {
	l.asked.Store(true)
	l.interrupt.Ask()
}

// Interrupted withdraws that, and reports whether it was asked for.
func (l *Left) Interrupted() bool {
	l.interrupt.Take()
	return l.asked.Swap(false)
}

// Continue lets the process continue to its next stop. The error is a *CallError if it cannot continue any more; it stays where it is. So it does
// at a fault without a handler that is to be delivered; without that the instruction is executed again.
func (l *Left) Continue(ctx context.Context, plan LeftPlan) (LeftStop, error) {
	x, c := l.x, l.x.c
	if l.over != nil {
		return l.stop, l.over
	}
	if plan.Deliver && l.stop.Signal != 0 && !l.caught {
		return l.stop, x.at(&CallError{End: CallSignal, Signal: l.stop.Signal}, x.thread)
	}
	failed := x.thread
	if err := l.prefer(plan.Step); err != nil {
		return l.stop, err
	}
	var signal syscall.Signal
	if plan.Deliver && x.thread == failed { // else it faults again when it continues
		signal = syscall.Signal(l.stop.Signal)
	}
	l.plan, l.caught, l.changed = plan, false, 0
	c.ctx = ctx
	for {
		if err := l.run(signal); err != nil {
			l.over = err
			return l.stop, err
		}
		stop, err := l.ended()
		if err != nil || stop.Kind != StopInterrupt || l.asked.Swap(false) {
			return stop, err
		}
		next, err := l.nextHeld()
		if err == nil && next != nil {
			err = l.give(next)
		}
		if err != nil {
			return stop, err
		}
		signal = 0
	}
}

// run lets the process run to a stop, or to the end of the thread's turn; signal is delivered to the thread.
func (l *Left) run(signal syscall.Signal) error {
	c, t := l.x.c, l.x.thread
	next, err := l.nextHeld()
	if err != nil {
		return err
	}
	if next != nil {
		turn := time.AfterFunc(leftTurn, l.interrupt.Ask)
		defer turn.Stop()
	}
	c.end = nil
	c.watch = startWatchdog(c)
	c.watch.watchProcess(c.PID, c.Control)
	err = c.debugging.proceed(t, l.plan.DebugPlan)
	if err == nil && signal != 0 {
		err = c.cont(t, signal)
	}
	if err == nil {
		err = c.goOn()
	}
	if err == nil {
		err = c.loop()
	}
	c.watch.stop()
	if err != nil {
		return err
	}
	return errors.Join(c.debugging.endStep(), c.StopAll())
}

// nextHeld returns the thread after the one with the right to run, in turn, that is held in the program; nil: there is none.
func (l *Left) nextHeld() (*tracee.Thread, error) {
	var first *tracee.Thread
	for _, t := range l.x.c.SortedThreads() {
		if t == l.x.thread || t.Index == 0 || t.Final == nil {
			continue
		}
		switch inside, err := l.x.inEngine(t); {
		case err != nil:
			return nil, err
		case inside:
		case t.Index > l.x.thread.Index:
			return t, nil
		case first == nil:
			first = t
		}
	}
	return first, nil
}

// ended says how a way has ended.
func (l *Left) ended() (LeftStop, error) {
	x, end := l.x, l.x.c.end
	if end.kind != EndMoment {
		if end.thread != nil {
			x.thread = end.thread
		}
		l.stop = LeftStop{Kind: StopEnd, Signal: end.signal}
	}
	for _, t := range x.c.SortedThreads() {
		if x.c.Threads[x.thread.TID] == nil && t.Index != 0 { // it has ended
			x.thread = t
		}
	}
	pc, err := x.stopped().ThreadPC(x.thread.Index)
	if err != nil {
		return l.stop, err
	}
	l.stop.Thread, l.stop.PC = x.thread.Index, pc
	if end.kind == EndMoment {
		return l.stop, nil
	}
	if end.kind == EndFailure {
		// A signal that the program sends itself is found in the engine, which does not come back from there.
		inside, err := x.inEngine(x.thread)
		if inside {
			l.over = x.ended(false, false)
		}
		return l.stop, err
	}
	l.over = x.ended(false, false)
	return l.stop, l.over
}

// prefer gives the right to run to the thread that is to be stepped, or else to one whose registers were changed, if it was held in the program.
func (l *Left) prefer(thread uint32) error {
	x := l.x
	if thread == 0 {
		thread = l.changed
	}
	t := x.c.ThreadNumbered(thread)
	if t == nil || t == x.thread || t.Final == nil {
		return nil
	}
	if inside, err := x.inEngine(t); err != nil || inside {
		return err
	}
	return l.give(t)
}

// give gives the right to run to a thread that is held in the program, and holds the one that has it.
func (l *Left) give(t *tracee.Thread) error {
	x, c := l.x, l.x.c
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	control.Holder, control.FreeFirst = t.Index, t.Index
	if err := c.WriteControl(control); err != nil {
		return err
	}
	if err := x.hold(x.thread, control); err != nil {
		return err
	}
	if err := c.StopAll(); err != nil {
		return err
	}
	return x.take(t.Index, nil)
}

// atSignal stops the process before the handler of a fault, if the debugger wants that.
func (l *Left) atSignal(t *tracee.Thread, signal syscall.Signal) bool {
	if l == nil || l.plan.StopsAt == nil || !l.plan.StopsAt(int(signal)) {
		return false
	}
	l.caught = true
	l.x.c.end = &end{kind: EndFailure, thread: t, signal: int(signal)}
	return true
}

// SetRegisters changes the registers of a thread that is in the program, in the form of ThreadRegisters.
func (l *Left) SetRegisters(thread uint32, general, extended []byte) error {
	x := l.x
	t := x.c.ThreadNumbered(thread)
	if t == nil {
		return fmt.Errorf("replay: there is no thread %d", thread)
	}
	inside, err := x.inEngine(t)
	if err != nil {
		return err
	}
	if inside || t != x.thread && t.Final == nil {
		return fmt.Errorf("replay: thread %d waits in the recording library, or has not begun: its registers cannot be changed", thread)
	}
	l.changed = thread
	if t.Final == nil {
		return x.SetRegisters(general, extended)
	}
	var regs ptrace.Registers
	if err := binary.Read(bytes.NewReader(general), binary.LittleEndian, &regs); err != nil {
		return fmt.Errorf("replay: registers: %w", err)
	}
	regs.Orig_rax = ^uint64(0)
	t.Final.Regs = regs
	return ptrace.SetRegset(t.TID, ptrace.RegsetXState, extended)
}

// Threads returns the threads that have begun, by number.
func (l *Left) Threads() []DebugThread {
	c := l.x.c
	for _, t := range c.Threads {
		if t.Index == 0 {
			_ = c.Identify(t) // one that the engine does not know yet is not shown
		}
	}
	return threadsOf(c.Process)
}

// hold sends a thread that is in the program to the engine, where it waits for the right to run.
func (x *Copy) hold(t *tracee.Thread, control *agent.RawControl) error {
	c := x.c
	if t.Index == 0 || !t.Stopped || t.Final != nil {
		return nil
	}
	r, err := c.ReadThread(t.Index)
	if err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	asks := regs.Rip == c.TrapPC+1
	inside := r.Inside != 0 || regs.Rip >= control.TextLow && regs.Rip < control.TextHigh
	if r.State != agent.RRunning || inside && !asks {
		return nil
	}
	t.Deferred = nil
	return c.park(t, &regs, 0)
}
