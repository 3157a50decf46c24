package replay

import (
	"errors"
	"fmt"

	"diagnose/evidence"
)

// MomentError says that a replay did not reach a Moment.
type MomentError struct {
	Moment evidence.Moment
	What   string
}

func (e *MomentError) Error() string {
	return fmt.Sprintf("replay: the moment %v was not reached: %s", e.Moment, e.What)
}

// momentEvent is for DG_TRAP_MOMENT: the thread has done the event of the next
// hook's Moment, or of its next one.
func (c *controller) momentEvent(t *thread, s *signalStop) error {
	if len(c.hooks) == 0 {
		return c.answer(t, s, 1)
	}
	hook := c.hooks[0]
	if hook.step != nil {
		if err := c.beginSteps(t, hook); err != nil {
			return err
		}
		return c.answer(t, s, 1)
	}
	if c.hookArmed && !hook.Every {
		return &MomentError{hook.At, fmt.Sprintf("thread %d came to its next event before", hook.At.Thread)}
	}
	var err error
	if c.hookArmed {
		if err = c.placer.breakAt(t, 0, 0); err == nil {
			err = c.nextHook(t, evidence.Moment{Thread: hook.At.Thread, Ordinal: hook.At.Ordinal + 1})
		}
	} else {
		err = c.armHook(t, evidence.Moment{})
	}
	if err != nil {
		return err
	}
	return c.answer(t, s, 1)
}

// nextHook is done with the first hook; a thread has come to a Moment.
func (c *controller) nextHook(t *thread, to evidence.Moment) error {
	c.hooks, c.hookArmed = c.hooks[1:], false
	if len(c.hooks) == 0 {
		return c.stopAt(0, ^uint64(0))
	}
	next := c.hooks[0].At
	if next.Thread == to.Thread && next.Ordinal == to.Ordinal {
		return c.armHook(t, to)
	}
	return c.stopAt(next.Thread, next.Ordinal)
}

// armHook is for the thread that has done the event of the next Moment and
// stands at the Moment before, if that has the same event.
func (c *controller) armHook(t *thread, before evidence.Moment) error {
	at := c.hooks[0].At
	pc, count := at.PC, at.Count
	if pc == before.PC && count > before.Count {
		count -= max(before.Count, 1)
	}
	if pc == 0 {
		regs, err := c.programRegisters(t)
		if err != nil {
			return err
		}
		pc, count = evidence.Addr(regs.Rip), 1
	}
	if err := c.placer.breakAt(t, pc, max(count, 1)); err != nil {
		return err
	}
	c.hookArmed = true
	return c.stopAt(at.Thread, at.Ordinal+1)
}

// stopAt asks the engine for DG_TRAP_MOMENT.
func (c *controller) stopAt(thread uint32, ordinal uint64) error {
	control, err := c.readControl()
	if err != nil {
		return err
	}
	control.StopThread, control.StopAt = thread, ordinal
	return c.writeStruct(c.control, control)
}

// arrived handles a thread at the place of a hook.
func (c *controller) arrived(t *thread) error {
	if err := c.placer.breakAt(t, 0, 0); err != nil {
		return err
	}
	if err := c.stopAll(); err != nil {
		return err
	}
	hook := c.hooks[0]
	if hook.walk != nil {
		if more, err := c.walkOn(t, hook.walk); err != nil || !more {
			return err
		}
		return c.goOn()
	}
	if err := c.call(hook, t); errors.Is(err, ErrEnough) {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	} else if err != nil {
		return err
	}
	var err error
	if hook.Every {
		c.hooks[0].At.Count = max(hook.At.Count, 1) + 1
		err = c.armHook(t, hook.At)
	} else {
		err = c.nextHook(t, hook.At)
	}
	if err != nil {
		return err
	}
	return c.goOn()
}

func (c *controller) call(h Hook, t *thread) error {
	c.watch.pause()
	defer c.watch.resume()
	s, err := c.stopped(t)
	if err != nil {
		return err
	}
	defer s.close()
	s.Moment = h.At
	if s.Moment.PC == 0 {
		regs, err := c.programRegisters(t)
		if err != nil {
			return err
		}
		s.Moment.PC, s.Moment.Count = evidence.Addr(regs.Rip), 1
	}
	c.attempt.hooked = true
	return h.Do(s)
}
