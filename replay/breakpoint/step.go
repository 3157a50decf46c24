package breakpoint

import (
	"diagnose/replay/ptrace"

	"diagnose/replay/tracee"
)

// SetStepping is called before a thread resumes, by one instruction (on) or at full speed. A
// thread that is stepped must execute the program's own instructions at their own addresses, not a
// probe's copies. Otherwise a loop with a probe in it would not be recognized, and accesses would
// be reported at addresses that no other replay has. So while a thread is stepped, no probe is in
// the text, and a debug register finds its place.
func (b *Breakpoints) SetStepping(t *tracee.Thread, on bool) error {
	if on != b.lifted {
		if err := b.lift(on); err != nil {
			return err
		}
	}
	x := b.threads[t.TID]
	if x == nil || on == x.lifted {
		return nil
	}
	x.lifted = on
	if x.place == nil || x.place.probe == nil {
		return nil
	}
	if !on && t.Stopped {
		regs, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return err
		}
		// The thread continues in the middle of the code that a jump has replaced.
		if err := b.demoteProbes(t, regs.Rip); err != nil {
			return err
		}
	}
	return b.set(t.TID)
}

// lift removes the jumps of all probes from the text, or puts them back.
func (b *Breakpoints) lift(on bool) error {
	b.lifted = on
	for _, x := range b.threads {
		if x.place == nil || x.place.probe == nil {
			continue
		}
		put := x.place.probe.putIn
		if on {
			put = x.place.probe.takeOut
		}
		if err := put(); err != nil {
			return err
		}
	}
	return nil
}

// putIn puts the probe's jumps into the text.
func (x *probe) putIn() error {
	for i, j := range x.jumps {
		if err := x.exchange(&x.replaced[i], &j); err != nil {
			return err
		}
	}
	return nil
}

// reachedLifted handles a stepped thread at the pc of its place, whose probe is not in the text.
func (b *Breakpoints) reachedLifted(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	p := x.place
	if !p.equal(regs, nil) {
		return Move{}, nil
	}
	if same, err := p.matches(t); err != nil || !same {
		return Move{}, err
	}
	if err := p.probe.remove(t); err != nil {
		return Move{}, err
	}
	p.probe = nil
	return b.arrive(t, x, regs)
}
