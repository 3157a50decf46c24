package replay

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay/breakpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorder/sites"
	"diagnose/replay/tracee"
)

// loop handles the process's stops until the replay is over.
func (c *controller) loop() error {
	for c.end == nil {
		stop, found := c.Queued()
		var err error
		if !found {
			stop, found, err = c.probing.next()
		}
		if errors.Is(err, unix.ECHILD) {
			return c.Gone(nil)
		}
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := c.serveStop(stop); err != nil {
			return err
		}
	}
	return nil
}

// serveStop handles a stop, and the accesses that were seen before it.
func (c *controller) serveStop(stop ptrace.Stop) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tr := c.tracing; tr != nil {
		if err := tr.Collected(func(tid int) bool { return tid == stop.TID }); err != nil {
			return err
		}
		if stop.Kind == ptrace.Ended {
			tr.Ended(stop.TID)
		}
	}
	return c.handle(stop)
}

// handle handles one stop. Its thread then continues, unless the replay is over.
func (c *controller) handle(stop ptrace.Stop) error {
	t := c.Threads[stop.TID]
	if t == nil && stop.Kind != ptrace.Ended && !c.IsLast() && c.OfAnotherProcess(stop.TID) {
		c.early = &stop
		return nil
	}
	if t == nil {
		t = &tracee.Thread{TID: stop.TID}
		c.Threads[stop.TID] = t
	}
	t.Stopped = stop.Kind != ptrace.Ended
	if continues, err := c.Traps.Passed(t, &stop); continues || err != nil {
		t.Stopped = !continues
		return err
	}
	if stop.Kind == ptrace.CallStop && c.Protection != nil {
		if again, err := c.Protection.AtCall(t); err != nil {
			return err
		} else if again {
			return c.cont(t, 0)
		}
	}
	if stop.Kind == ptrace.CallStop && c.loading != nil {
		if err := c.loading.CheckCall(t); err != nil {
			return err
		}
	}
	// The watchdog's SIGSTOP may be delivered long after other stops of the thread.
	if t.Stopped && c.watch.woke() {
		return c.woken(t)
	}
	if stop.Kind == ptrace.SignalStop && stop.Signal == unix.SIGSTOP && c.debugging.interrupts(t) {
		return c.debugging.interrupted(t)
	}
	if q := c.watch.question.Load(); q != nil && stop.Kind == ptrace.SignalStop && stop.Signal == unix.SIGSTOP {
		return c.looked(t, q)
	}
	switch stop.Kind {
	case ptrace.Ended:
		delete(c.Threads, stop.TID)
		if stop.TID == c.PID {
			return c.Gone(&stop)
		}
		return c.Traps.Forget(stop.TID)
	case ptrace.SignalStop:
		err := c.signalled(t, stop)
		if errors.Is(err, unix.ESRCH) {
			return nil // killed meanwhile: its end is reported next
		}
		return err
	case ptrace.EventStop:
		return c.event(t, stop)
	case ptrace.Interrupted:
		return c.begin(t)
	}
	return c.cont(t, 0)
}

func (c *controller) event(t *tracee.Thread, stop ptrace.Stop) error {
	switch stop.Event {
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		return c.forked(t)
	case unix.PTRACE_EVENT_SECCOMP:
		return c.refuse(t)
	case unix.PTRACE_EVENT_EXEC:
		return fmt.Errorf("replay: process %d executed another program, which no replay does", c.PID)
	}
	return c.cont(t, 0)
}

// signalled handles a signal that is about to be delivered to a thread.
func (c *controller) signalled(t *tracee.Thread, stop ptrace.Stop) error {
	info, err := ptrace.GetSiginfo(t.TID)
	if err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	s := tracee.SignalStop{Signal: stop.Signal, Code: info.Code(), Info: info, Regs: regs}
	if others, err := c.Traps.AtTrap(t, &s); err != nil {
		return err
	} else if others {
		return c.cont(t, 0)
	}
	if done, err := c.tracing.HandleSignal(t, &s); done || err != nil {
		return err
	}
	if done, err := c.probing.handleSignal(t, &s); done || err != nil {
		return err
	}
	if done, err := c.debugging.handleTally(t, &s); done || err != nil {
		return err
	}
	if done, err := c.breakTrap(t, &s); done || err != nil {
		return err
	}
	switch {
	case c.IsTrap(&s):
		return c.trapped(t, &s)
	case s.Signal == unix.SIGTRAP && s.Code > 0:
		return c.trapSignal(t, &s)
	case s.Code > 0 && IsFault(s.Signal):
		if done, err := c.lendAtFault(t, &s); done || err != nil {
			return err
		}
		if err := c.placer.HandleFault(t, &s.Regs); err != nil {
			return err
		}
		if c.Control != 0 {
			if err := sites.AtAtomic(c.Memory, c.Control, t.TID, &s.Regs); err != nil {
				return err
			}
		}
		redirected, err := c.redirect(t, &s)
		switch {
		case err != nil:
			return err
		case redirected:
			return c.cont(t, 0)
		}
		return c.fault(t, &s)
	}
	return c.sent(t, &s)
}

// trapSignal handles a SIGTRAP that an instruction caused.
func (c *controller) trapSignal(t *tracee.Thread, s *tracee.SignalStop) error {
	if done, err := c.debugging.watchTrap(t, s); done || err != nil {
		return err
	}
	if c.stepper.Steps(t) && (tracee.IsStepTrap(s.Code) || s.Code == tracee.TrapHandler) {
		spent, err := c.stepper.Stepped(t, &s.Regs)
		if err != nil {
			return err
		}
		if spent {
			c.end = &end{kind: EndMoment, thread: t}
			return nil
		}
		if done, err := c.debugging.stepEnded(t, s.Regs.Rip); done || err != nil {
			return err
		}
		return c.cont(t, 0)
	}
	if s.Code == tracee.TrapBreakpoint && c.placer.UsesRegister(t) {
		// Its status was lost (tracee.IsStepTrap), so the kernel did not set the flag by which an
		// instruction breakpoint stops a thread only once.
		s.Regs.Eflags |= ptrace.FlagResume
		if err := ptrace.SetRegisters(t.TID, &s.Regs); err != nil {
			return err
		}
	}
	back := c.stepper.StepsAgainFrom(t, s.Regs.Rip)
	if back {
		if err := c.stepper.CameBack(t, &s.Regs); err != nil {
			return err
		}
	}
	hit, other := false, true
	var err error
	if c.tracing != nil {
		hit, other, err = c.tracing.WatchTrap(t, s)
	}
	if err != nil || c.end != nil {
		return err
	}
	if hit && !other {
		return c.resume(t)
	}
	m, err := c.placer.HandleTrap(t, &s.Regs)
	if err == nil && (m.Kind == breakpoint.Foreign || m.Kind == breakpoint.Continues && m.Signal == 0 && !m.Step) {
		if done, err := c.debugging.arrived(t, s.Regs.Rip, back); done || err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return err
	case m.Kind != breakpoint.Foreign:
		err = c.moved(t, m, s)
	case hit || back || c.tracing.LostTrap(s):
		return c.resume(t)
	default:
		return c.fault(t, s)
	}
	if err == nil && c.end == nil && c.allStopped {
		c.allStopped = false
		err = c.goOn()
	}
	return err
}

// redirect sends a thread into the engine that is at an instruction which traps for the engine.
func (c *controller) redirect(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	if c.Control == 0 {
		return false, nil
	}
	control, err := c.ReadControl()
	if err != nil {
		return false, err
	}
	regs := s.Regs
	return sites.Redirect(t.TID, s.Signal, &regs, control, c.Stage().TrapsAt)
}

// moved carries out a move of the placer.
func (c *controller) moved(t *tracee.Thread, m breakpoint.Move, s *tracee.SignalStop) error {
	switch m.Kind {
	case breakpoint.Holds:
		return c.park(t, &s.Regs, 0)
	case breakpoint.Arrived:
		return c.arrived(t)
	case breakpoint.Preempts:
		if c.debugging.watches() {
			s.Regs.Eflags &^= ptrace.FlagResume // with it the access of the instruction would not be seen
		}
		return c.parkFor(t, &tracee.Final{Regs: s.Regs}, agent.ParkedPoint)
	}
	if m.Kind == breakpoint.Continues && m.Signal == 0 && !m.Step {
		if err := c.debugging.passStepped(t); err != nil {
			return err
		}
	}
	if m.Info != nil {
		if err := ptrace.SetSiginfo(t.TID, *m.Info); err != nil {
			return err
		}
	}
	return c.contBy(t, syscall.Signal(m.Signal), m.Step || c.stepper.Steps(t))
}

// sent handles signals that were sent to the program. The engine raises all signals of the log
// itself, so none of these may reach the program. But a signal for whose frame the stack has no
// room ends it, as in the recording.
func (c *controller) sent(t *tracee.Thread, s *tracee.SignalStop) error {
	if c.Control == 0 {
		return c.cont(t, 0)
	}
	if err := c.Identify(t); err != nil {
		return c.cont(t, 0)
	}
	if s.Signal != unix.SIGSEGV || s.Code != siTKill {
		return c.cont(t, 0)
	}
	r, err := c.ReadThread(t.Index)
	if err != nil {
		return err
	}
	next, err := c.NextEvent(c.Process, t)
	if err != nil {
		return err
	}
	if r.Inside != 0 && next == nil && c.EndsWith(t, s.Signal) {
		return c.park(t, &s.Regs, int(s.Signal))
	}
	return c.cont(t, 0)
}

const siTKill = -6 // SI_TKILL

// fault handles a signal that an instruction of the program raised. Either the log has it, or the
// recording ended with it, or the replay diverged from the recording.
func (c *controller) fault(t *tracee.Thread, s *tracee.SignalStop) error {
	if c.Control == 0 {
		return tracee.Inputf("replay: %s at %#x before the recorder started in the program", wording.Signal(int(s.Signal)), s.Regs.Rip)
	}
	if err := c.Identify(t); err != nil {
		return err
	}
	if c.free() {
		if done, err := c.freeFault(t, s); done || err != nil {
			return err
		}
	}
	next, err := c.NextEvent(c.Process, t)
	if err != nil {
		return err
	}
	if next != nil && next.Kind == agent.EvSignal && next.Object == uint64(s.Signal) {
		return c.cont(t, s.Signal)
	}
	if next == nil && (c.EndsWith(t, s.Signal) || c.EndsShort()) {
		f := &tracee.Final{Regs: s.Regs}
		if c.EndsWith(t, s.Signal) || ptrace.Fatal(t.TID, s.Signal) {
			f.Signal, f.Info = int(s.Signal), &s.Info
		} // else its handler runs, of which the log has no events
		return c.parkFor(t, f, agent.ParkedEnd)
	}
	return c.diverge(t, &DivergenceError{Reason: DiffersFault, Signal: int(s.Signal), PC: evidence.Addr(s.Regs.Rip)})
}

// goOn resumes the threads after stopAll.
func (c *controller) goOn() error {
	for _, t := range c.Threads {
		if !t.Stopped {
			continue
		}
		var err error
		if stop := t.Deferred; stop != nil {
			t.Deferred = nil
			err = c.handle(*stop)
		} else {
			err = c.cont(t, 0)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if c.end != nil {
			return nil
		}
	}
	return nil
}
