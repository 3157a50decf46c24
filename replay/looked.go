package replay

import (
	"time"

	"diagnose/replay/spin"
	"diagnose/replay/tracee"
)

// question is the watchdog's question about a thread that computes: whether it is in a loop that
// it cannot leave.
type question struct {
	after time.Duration // since the last event
	steps int           // the most instructions to step
}

// looked answers the watchdog's question about a thread that it stopped. The replay ends there, or
// continues as if there had been no question.
func (c *controller) looked(t *tracee.Thread, q *question) error {
	if may, err := c.mayLook(t); err != nil {
		return err
	} else if !may {
		c.watch.question.Store(nil)
		return c.cont(t, 0)
	}
	c.result.looks++
	endless, other, err := spin.Endless(c.Process, t, q.steps)
	c.watch.question.Store(nil)
	switch {
	case err != nil:
		return err
	case other != nil:
		return c.handle(*other)
	case !endless:
		return c.cont(t, 0)
	}
	if err := c.stuck(t, true); err != nil {
		return err
	}
	e := c.end.failure.(*StuckError)
	e.After, e.Endless = q.after, true
	return nil
}

// mayLook reports whether a thread is the one that runs, outside of the engine, and can be stepped
// without loss. With watches by debug registers, a single stop would report both a step and an
// access.
func (c *controller) mayLook(t *tracee.Thread) (bool, error) {
	if c.Control == 0 || c.free() || t.Final != nil || c.stepper.Steps(t) || !c.tracing.CanStep() {
		return false, nil
	}
	if c.Identify(t) != nil {
		return false, nil
	}
	r, err := c.ReadThread(t.Index)
	if err != nil || r.Inside != 0 {
		return false, err
	}
	control, err := c.ReadControl()
	return err == nil && control.Holder == t.Index, err
}
