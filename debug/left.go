package debug

import (
	"context"
	"errors"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
)

// Left is the process of a session that has left the recording: a copy that continues as the program would. The session's position stays where
// it has left, until Changes.Discard, or a way to another position, gives the copy up.
type Left struct {
	s    *Session
	way  *replay.Left
	stop Stop
}

// ErrLeft says that the process has left the recording, so it only goes forwards.
var ErrLeft = errors.New("debug: the process has left the recording")

// Leave leaves the recording where the session is, with the changes made here.
func (c Changes) Leave() error {
	if c.s.Left() != nil {
		return ErrLeft
	}
	return c.s.Do(func(d *replay.DebugStop) error {
		x, err := c.s.live.copy(d)
		if err != nil {
			return err
		}
		way, err := x.Leave(c.s.stop.Thread)
		if err == nil {
			c.s.left.Store(&Left{s: c.s, way: way, stop: c.s.stop})
		}
		return err
	})
}

// Left returns the process that has left the recording; nil: it has not. Any goroutine may ask.
func (s *Session) Left() *Left { return s.left.Load() }

// LeftPlan says how a process that has left the recording continues.
type LeftPlan struct {
	Halts
	// Step is the number of a thread that executes one instruction, and more while Within, if it is set, holds of its stop; 0: none.
	Step   uint32
	Within func(Stop) bool
	// Deliver: the signal at which it has stopped takes its course.
	Deliver bool
	// Time bounds how long it runs.
	Time time.Duration
}

// ErrLeftTime says that LeftPlan.Time is over.
var ErrLeftTime = errors.New("debug: the time is over")

// Continue continues to the next halt. Interrupt stops it. The error is a *replay.CallError if it cannot continue, or ErrLeftTime.
func (l *Left) Continue(plan LeftPlan) error {
	s := l.s
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	l.way.Interrupted() // one that came too late
	s.mu.Lock()
	s.calling = l.way.Interrupt
	s.mu.Unlock()
	end := time.Now().Add(plan.Time)
	timer := time.AfterFunc(plan.Time, l.way.Interrupt)
	defer timer.Stop()
	err := s.Do(func(*replay.DebugStop) error { return l.run(ctx, &plan) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calling = nil
	if err == nil && l.stop.Kind == replay.StopInterrupt && time.Now().After(end) {
		return ErrLeftTime
	}
	return err
}

func (l *Left) run(ctx context.Context, plan *LeftPlan) error {
	halts := plan.plan()
	halts.Step = plan.Step
	for {
		next := replay.LeftPlan{DebugPlan: halts, StopsAt: plan.Signals.Has, Deliver: plan.Deliver}
		stop, err := l.way.Continue(ctx, next)
		l.stop = Stop{Kind: stop.Kind, Thread: stop.Thread, PC: uint64(stop.PC), Signal: stop.Signal}
		if stop.Kind == replay.StopWatch {
			l.stop.Watch = halts.Watches[stop.Watch]
		}
		if err != nil || stop.Kind != replay.StopStep || plan.Within == nil || !plan.Within(l.stop) {
			return err
		}
		if plan.Deliver = false; l.way.Interrupted() {
			l.stop.Kind = replay.StopInterrupt
			return nil
		}
	}
}

// Threads returns the threads of the stopped process, or of the copy of it.
func (s *Session) Threads() (list []replay.DebugThread, err error) {
	err = s.Do(func(d *replay.DebugStop) error {
		if x := s.Left(); x != nil {
			list = x.way.Threads()
		} else {
			list = d.Threads()
		}
		return nil
	})
	return list, err
}

// SetRegisters changes a thread's registers in the copy, which is made if there is none.
func (c Changes) SetRegisters(thread uint32, general, extended []byte) error {
	if l := c.s.Left(); l != nil {
		return c.s.Do(func(*replay.DebugStop) error { return l.way.SetRegisters(thread, general, extended) })
	}
	return c.Do(thread, func(x *replay.Copy) error { return x.SetRegisters(general, extended) })
}

// WriteMemory changes memory in the copy, which is made if there is none.
func (c Changes) WriteMemory(addr evidence.Addr, content []byte) error {
	return c.s.Do(func(d *replay.DebugStop) error {
		x, err := c.s.live.copy(d)
		if err != nil {
			return err
		}
		return x.WriteMemory(addr, content)
	})
}
