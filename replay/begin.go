package replay

import (
	"diagnose/agent"
	"diagnose/replay/breakpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// begin handles a new thread that has not run yet. If the recording ended before its first event,
// only the core says how far it gets, so its place must be set before it runs to that event.
func (c *controller) begin(t *tracee.Thread) error {
	if err := c.armWatches(t); err != nil {
		return err
	}
	if t.Index != 0 || c.Control == 0 || c.Core == nil || !c.IsLast() {
		return c.cont(t, 0)
	}
	unbegun := c.Unbegun()
	if len(unbegun) == 0 {
		return c.cont(t, 0)
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	for _, i := range unbegun {
		end := c.RecordedThreads()[i]
		raw := end.Raw
		if raw.ThreadPointer != regs.Fs_base {
			continue
		}
		r, err := c.ReadThread(i)
		if err != nil || r.State != agent.RStarting || r.RealTID != 0 || r.ThreadPointer != regs.Fs_base {
			continue
		}
		control, err := c.ReadControl()
		if err != nil {
			return err
		}
		if pc := uint64(end.Registers.PC()); pc >= control.TextLow && pc < control.TextHigh {
			break
		}
		t.Index = i
		m, err := c.placer.First(t, end, &regs)
		if err != nil {
			return err
		}
		if m.Kind == breakpoint.Holds {
			return c.park(t, &regs, 0)
		}
		break
	}
	return c.cont(t, 0)
}
