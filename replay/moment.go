package replay

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/replay/tracee"
)

// MomentError says that a replay did not reach a Moment.
type MomentError struct {
	Moment evidence.Moment
	What   string
}

func (e *MomentError) Error() string {
	return fmt.Sprintf("replay: the moment %v was not reached: %s", e.Moment, e.What)
}

// momentBreaker makes a thread stop at the place of a Moment.
type momentBreaker interface {
	BreakAt(t *tracee.Thread, pc evidence.Addr, count uint64) error
}

// hookQueue has the pending hooks, in the order of their events.
type hookQueue struct {
	process *tracee.Process
	placer  momentBreaker
	list    []Hook
	// armed: the event of the first hook has occurred.
	armed bool
}

// momentEvent handles DG_TRAP_MOMENT: the thread has done the event of the next hook's Moment, or
// the event after it.
func (c *controller) momentEvent(t *tracee.Thread, s *tracee.SignalStop) error {
	if len(c.hooks.list) == 0 {
		return c.answer(t, s, 1)
	}
	hook := c.hooks.list[0]
	if hook.step != nil && hook.At.PC == 0 {
		if err := c.stepper.BeginWindow(t, hook.step); err != nil {
			return err
		}
		if err := c.hooks.next(t, evidence.Moment{}); err != nil {
			return err
		}
		return c.answer(t, s, 1)
	}
	if hook.keep != 0 {
		if err := c.hooks.next(t, evidence.Moment{}); err != nil {
			return err
		}
		return c.keepHere(t, s, hook.keep)
	}
	if hook.debug {
		if err := c.hooks.next(t, evidence.Moment{}); err != nil {
			return err
		}
		return c.debugging.atEvent(t, s)
	}
	if c.hooks.armed && !hook.Every {
		return &MomentError{hook.At, fmt.Sprintf("thread %d reached its next event before", hook.At.Thread)}
	}
	var err error
	if c.hooks.armed {
		if err = c.placer.BreakAt(t, 0, 0); err == nil {
			err = c.hooks.next(t, evidence.Moment{Thread: hook.At.Thread, Ordinal: hook.At.Ordinal + 1})
		}
	} else {
		err = c.hooks.arm(t, evidence.Moment{})
	}
	if err != nil {
		return err
	}
	return c.answer(t, s, 1)
}

// next removes the first hook; a thread has reached the Moment to.
func (q *hookQueue) next(t *tracee.Thread, to evidence.Moment) error {
	q.list, q.armed = q.list[1:], false
	if len(q.list) == 0 {
		return q.process.StopAt(0, ^uint64(0))
	}
	next := q.list[0].At
	if next.Thread == to.Thread && next.Ordinal == to.Ordinal {
		return q.arm(t, to)
	}
	return q.process.StopAt(next.Thread, next.Ordinal)
}

// arm sets the breakpoint of the next Moment, whose event the thread has done. The thread is at
// the Moment before, if that has the same event.
func (q *hookQueue) arm(t *tracee.Thread, before evidence.Moment) error {
	at := q.list[0].At
	pc, count := at.PC, at.Count
	if pc == before.PC && count > before.Count {
		count -= max(before.Count, 1)
	}
	if pc == 0 {
		regs, err := q.process.ProgramRegisters(t)
		if err != nil {
			return err
		}
		pc, count = evidence.Addr(regs.Rip), 1
	}
	if err := q.placer.BreakAt(t, pc, max(count, 1)); err != nil {
		return err
	}
	q.armed = true
	return q.process.StopAt(at.Thread, at.Ordinal+1)
}

// missed returns the first hook that the replay should have reached and has not; nil: none.
func (q *hookQueue) missed() *Hook {
	for i := range q.list {
		if h := &q.list[i]; !h.Every && h.step == nil {
			return h
		}
	}
	return nil
}

// arrived handles a thread at the place of a hook.
func (c *controller) arrived(t *tracee.Thread) error {
	if err := c.placer.BreakAt(t, 0, 0); err != nil {
		return err
	}
	if err := c.StopAll(); err != nil {
		return err
	}
	if c.tracing != nil {
		if err := c.tracing.Settle(); err != nil {
			return err
		}
	}
	if err := c.probing.drain(); err != nil {
		return err
	}
	hook := c.hooks.list[0]
	if hook.step != nil {
		if err := errors.Join(c.stepper.BeginWindow(t, hook.step), c.hooks.next(t, hook.At)); err != nil {
			return err
		}
		return c.goOn()
	}
	if hook.walk != nil {
		if more, err := c.walkOn(t, hook.walk); err != nil || !more {
			return err
		}
		return c.goOn()
	}
	if err := c.callHook(hook, t); errors.Is(err, ErrEnough) {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	} else if err != nil {
		return err
	}
	var err error
	if hook.Every {
		c.hooks.list[0].At.Count = max(hook.At.Count, 1) + 1
		err = c.hooks.arm(t, hook.At)
	} else {
		err = c.hooks.next(t, hook.At)
	}
	if err != nil {
		return err
	}
	return c.goOn()
}

func (c *controller) callHook(h Hook, t *tracee.Thread) error {
	c.watch.pause()
	defer c.watch.resume()
	s, err := c.stopped(t)
	if err != nil {
		return err
	}
	defer s.close()
	s.Moment = h.At
	if s.Moment.PC == 0 {
		regs, err := c.ProgramRegisters(t)
		if err != nil {
			return err
		}
		s.Moment.PC, s.Moment.Count = evidence.Addr(regs.Rip), 1
	}
	c.attempt.hooked = true
	return h.Do(s)
}
