package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// arrivals are the times that a thread comes to an instruction.
type arrivals struct {
	pc     evidence.Addr
	thread uint32
	// ordinal is the thread's last event; events is behind how many of its events,
	// the last one first, is looked.
	ordinal, events uint64
	// before is the hit that they have to come before; nil: the end.
	before *before
	// is tells those that are wanted; nil: all.
	is func(*image.Registers) bool
	// most bounds how often it is looked; 0: mostArrivals.
	most int
}

// before is an access that a pass saw.
type before struct {
	watches []replay.Watch
	hit     uint64
}

// mostArrivals bounds how often an instruction is looked at in a replay.
const mostArrivals = 20_000

// userSpace is the end of the addresses that a program can have.
const userSpace = 1 << 47

// errPassed says that an instruction was executed too often to stop each time.
var errPassed = errors.New("passed too often")

// moments finds when the failing run came to an instruction, by replays of it, and looks at the process there.
type moments struct {
	progress *progress
	rec      *record.Recording
	files    image.Options
	// handled is the signal whose handler did not return; nil: there is none.
	handled *eventlog.HandledSignal
}

// last is the Moment of the last arrival. Its Count is 0 if there was none.
func (m *moments) last(a arrivals) (evidence.Moment, error) {
	return lastArrival(m.progress.ctx, m.rec, m.files, a)
}

func lastArrival(ctx context.Context, rec *record.Recording, files image.Options, a arrivals) (found evidence.Moment, err error) {
	if a.pc == 0 || a.pc >= userSpace || a.ordinal == 0 {
		return found, nil
	}
	opts := replay.WatchRequest{Common: replay.Common{Image: files}}
	passed, most := 0, cmp.Or(a.most, mostArrivals)
	do := func(s *replay.Stopped) error {
		if passed++; passed > most {
			return fmt.Errorf("the instruction at %v, after event %d of thread %d: %w", a.pc, a.ordinal-a.events, a.thread, errPassed)
		}
		regs, err := s.Registers()
		if err == nil && (a.is == nil || a.is(&regs)) {
			found = s.Moment
		}
		return err
	}
	for o := a.ordinal - min(a.events, a.ordinal) + 1; o <= a.ordinal; o++ {
		at := evidence.Moment{Thread: a.thread, Ordinal: o, PC: a.pc, Count: 1}
		opts.Hooks = append(opts.Hooks, replay.Hook{At: at, Every: true, Do: do})
	}
	const withHook = 3 // of the four debug registers
	if a.before != nil && len(a.before.watches) <= withHook {
		opts.Watches = a.before.watches
		opts.Inspect = map[uint64]func(*replay.Hit, *replay.Stopped) error{a.before.hit: func(*replay.Hit, *replay.Stopped) error { return replay.ErrEnough }}
	}
	_, err = replay.Run(ctx, rec, opts)
	return found, err
}

// standAt calls look with the process where a thread is at a Moment.
func (m *moments) standAt(at evidence.Moment, look func(*replay.Stopped, *image.Process, *image.Thread) error) error {
	hook := replay.Hook{At: at, Do: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		t := p.FailingThread()
		if t == nil {
			return errNoThread
		}
		if err := look(s, p, t); err != nil {
			return err
		}
		return replay.ErrEnough
	}}
	_, err := replay.Run(m.progress.ctx, m.rec, replay.PlainRequest{Common: replay.Common{Image: m.files, Hooks: []replay.Hook{hook}}})
	return err
}

// nearEvents and farEvents are behind how many of its events a thread is looked
// for at an instruction: first where it is likely, then farther back.
const (
	nearEvents = 1
	farEvents  = 64
)

// lastOfFailing is where the failing thread last came to an instruction.
func (m *moments) lastOfFailing(pc evidence.Addr) (evidence.Moment, error) {
	thread := m.rec.Manifest.Outcome.Thread
	schedule, err := m.rec.Log.Schedule()
	if err != nil && len(schedule) == 0 {
		return evidence.Moment{}, err
	}
	return m.lastNear(arrivals{pc: pc, thread: thread, ordinal: m.lastEvent(schedule)})
}

// lastEvent is the failing thread's last event before it failed.
func (m *moments) lastEvent(schedule eventlog.Schedule) uint64 {
	return lastEvent(m.rec.Manifest.Outcome.Thread, m.handled, schedule)
}

func lastEvent(failing uint32, handled *eventlog.HandledSignal, schedule eventlog.Schedule) uint64 {
	if handled != nil {
		return handled.Ordinal - 1
	}
	return schedule.Events()[failing]
}

// lastNear looks behind the last event, then behind more.
func (m *moments) lastNear(a arrivals) (found evidence.Moment, err error) {
	for _, a.events = range []uint64{nearEvents, farEvents} {
		if found, err = m.last(a); err != nil || found.Count > 0 {
			return found, err
		}
	}
	return found, nil
}

// hitBefore is an access as the end of a search.
func hitBefore(plan *watchtrace.Plan, log *evidence.AccessLog, access *evidence.Access) *before {
	pass := max(log.Variables[access.Variable].Pass-1, 0)
	return &before{watches: plan.Passes[pass].Watches, hit: access.Hit}
}
