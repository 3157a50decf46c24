package replay

import (
	"fmt"

	"diagnose/agent"
	"diagnose/replay/breakpoint"
	"diagnose/replay/tracee"
)

// trapped answers a request of the engine.
func (c *controller) trapped(t *tracee.Thread, s *tracee.SignalStop) error {
	what := s.Regs.Rax
	switch what {
	case agent.TrapHello, agent.TrapForked:
		answer, err := c.hello(s, what == agent.TrapForked)
		if err == nil {
			err = c.tracing.InstallProbes(t, s)
		}
		if err == nil {
			err = c.probing.install(t, s)
		}
		if err == nil {
			err = c.breaks.place()
		}
		if err == nil {
			err = c.Traps.Place()
		}
		if err == nil {
			err = c.debugging.begin()
		}
		if err != nil {
			return err
		}
		return c.answer(t, s, answer)
	}
	if c.Control == 0 {
		return fmt.Errorf("replay: the engine asked %d before it had started", what)
	}
	switch what {
	case agent.TrapObjects:
		control, err := c.ReadControl()
		if err != nil {
			return err
		}
		if err := c.WriteSites(c.Stage().Sites, control, control.PatchCount); err != nil {
			return err
		}
		if err := c.WriteControl(control); err != nil {
			return err
		}
		if err := c.tracing.InstallProbes(t, s); err != nil {
			return err
		}
		if err := c.probing.install(t, s); err != nil {
			return err
		}
		if err := c.breaks.place(); err != nil {
			return err
		}
		if err := c.Traps.Place(); err != nil {
			return err
		}
		return c.answer(t, s, uint64(control.PatchCount))
	case agent.TrapExit:
		return c.exits(t, s)
	case agent.TrapLeft, agent.TrapFatal, agent.TrapStuck, agent.TrapUnpark:
		return c.freeTrapped(t, s)
	case agent.TrapArm:
		t.Index = uint32(s.Regs.Rdi)
		if err := c.placer.Arm(t, s.Regs.Rsi); err != nil {
			return err
		}
		return c.answer(t, s, 1)
	case agent.TrapLast:
		t.Index = uint32(s.Regs.Rdi)
		m, err := c.placer.Last(t)
		if err != nil {
			return err
		}
		if m.Kind == breakpoint.Holds {
			return c.park(t, &s.Regs, 0)
		}
		return c.answer(t, s, 1)
	case agent.TrapDiverged:
		if c.free() {
			return c.freeDiverged(t)
		}
		return c.diverged(t)
	case agent.TrapFinished:
		if c.free() {
			return c.freeFinished(t, s)
		}
		return c.finished(t)
	case agent.TrapMoment:
		t.Index = uint32(s.Regs.Rdi)
		return c.momentEvent(t, s)
	}
	return fmt.Errorf("replay: the engine asked %d, which this tool does not know", what)
}

// exits handles a thread that is about to end the process. As long as the replay is in the recording, an exit that a
// signal overtook waits; a free replay may come back to it.
func (c *controller) exits(t *tracee.Thread, s *tracee.SignalStop) error {
	if err := c.Identify(t); err != nil {
		return err
	}
	waits := c.exitOvertaken(t)
	if waits && c.free() {
		control, err := c.ReadControl()
		if err != nil {
			return err
		}
		waits = control.Free == agent.FreeMay
	}
	if waits {
		return c.park(t, &s.Regs, 0)
	}
	return c.exited(t, s, c.free())
}
