package debug

import (
	"context"
	"errors"

	"diagnose/evidence"
	"diagnose/replay"
)

// State is the stopped process, or a copy of it that was changed.
type State interface {
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
	ThreadRegisters(number uint32) (general, extended []byte, err error)
}

// Inspect calls a function with the stopped process, or with the copy of it if there is one.
func (s *Session) Inspect(call func(State) error) error {
	return s.Do(func(d *replay.DebugStop) error {
		if x := s.live.copied; x != nil {
			return call(x)
		}
		return call(d)
	})
}

// Changes are what a user changes of the stopped process, in a copy of it.
type Changes struct{ s *Session }

// Changes returns the changes here.
func (s *Session) Changes() Changes { return Changes{s} }

// Do calls a function with a copy of the stopped process whose registers can be changed in a thread. There is one copy, which lives until
// the session's position changes, or until Discard.
func (c Changes) Do(thread uint32, call func(*replay.Copy) error) error {
	return c.s.Do(func(d *replay.DebugStop) error {
		x, err := c.s.live.copy(d)
		if err != nil {
			return err
		}
		if err := x.Select(thread); err != nil {
			return err
		}
		return call(x)
	})
}

// copy returns the copy, which is made if there is none.
func (l *live) copy(d *replay.DebugStop) (x *replay.Copy, err error) {
	if l.copied == nil {
		l.copied, err = d.CopyMemory()
	}
	return l.copied, err
}

// Copied is the state of the copy.
type Copied struct {
	// Thread can be changed; 0: memory alone was.
	Thread uint32
	// Calls: it can call functions.
	Calls bool
}

// Copied returns the state of the copy; nil: there is none.
func (c Changes) Copied() (state *Copied, err error) {
	err = c.s.Do(func(*replay.DebugStop) error {
		if x := c.s.live.copied; x != nil {
			state = &Copied{Thread: x.Thread(), Calls: !x.Over()}
		}
		return nil
	})
	return state, err
}

// Discard gives up the copy.
func (c Changes) Discard() error {
	c.s.left.Store(nil)
	return c.s.Do(func(*replay.DebugStop) error { return c.s.live.discard() })
}

// discard gives up the copy, on the thread that traces it.
func (l *live) discard() error {
	x := l.copied
	if x == nil {
		return nil
	}
	l.copied = nil
	return x.Close()
}

// StepOther lets another thread of the copy execute one instruction.
func (c Changes) StepOther(thread uint32) error {
	return c.s.Do(func(*replay.DebugStop) error {
		if c.s.live.copied == nil {
			return nil
		}
		return c.s.live.copied.StepOther(thread)
	})
}

// Run lets a thread of the copy run up to one of the instructions, or execute one instruction if there are none. The error is that of
// replay.Copy.Run, or ErrInterrupted.
func (c Changes) Run(thread uint32, upTo []evidence.Addr) error {
	ctx, cancel := context.WithCancel(c.s.ctx)
	defer cancel()
	c.s.mu.Lock()
	c.s.calling = cancel
	c.s.mu.Unlock()
	var limit replay.CallLimit
	if len(upTo) == 0 {
		limit.Instructions = 1
	}
	err := c.Do(thread, func(x *replay.Copy) error { return x.Run(ctx, upTo, limit) })
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.calling = nil
	if errors.Is(err, context.Canceled) && c.s.ctx.Err() == nil {
		return ErrInterrupted
	}
	return err
}
