package replay

import "diagnose/replay/ptrace"

// steps implements placer. A thread that is stepped is to execute the program's own
// instructions, where the program has them, and not a probe's: a loop that a probe is
// in would not be one, and accesses would be told at addresses that no other replay
// has. So while it is, no probe is in the text, and a debug register finds its place.
func (b *breakpoints) steps(t *thread, on bool) error {
	if on != b.lifted {
		if err := b.lift(on); err != nil {
			return err
		}
	}
	x := b.threads[t.tid]
	if x == nil || on == x.lifted {
		return nil
	}
	x.lifted = on
	if x.place == nil || x.place.probe == nil {
		return nil
	}
	if !on && t.stopped {
		regs, err := ptrace.GetRegisters(t.tid)
		if err != nil {
			return err
		}
		// It goes on in the middle of what a jump has replaced.
		if err := b.demoteProbes(t, regs.Rip); err != nil {
			return err
		}
	}
	return x.set(t.tid)
}

// lift takes the jumps of all probes out of the text, or puts them back.
func (b *breakpoints) lift(on bool) error {
	b.lifted = on
	for _, x := range b.threads {
		if x.place == nil || x.place.probe == nil {
			continue
		}
		put := b.jump
		if on {
			put = b.restore
		}
		if err := put(x.place.probe); err != nil {
			return err
		}
	}
	return nil
}

// jump puts a probe's jumps into the text.
func (b *breakpoints) jump(x *probe) error {
	for _, j := range x.jumps {
		if _, err := b.c.memory.WriteAt(j.data, int64(j.addr)); err != nil {
			return err
		}
	}
	return nil
}

// reachedLifted is for a thread that is stepped and at the pc of its place, which has a
// probe that is not in the text.
func (b *breakpoints) reachedLifted(t *thread, x *broken, regs *ptrace.Registers) (move, error) {
	p := x.place
	if !p.equal(regs, nil) {
		return move{}, nil
	}
	if same, err := p.matches(t); err != nil || !same {
		return move{}, err
	}
	if err := b.removeProbe(t, p.probe); err != nil {
		return move{}, err
	}
	p.probe = nil
	return b.arrive(t, x, regs)
}
