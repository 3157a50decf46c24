package debug

import (
	"context"
	"errors"
	"time"

	"diagnose/replay"
	"diagnose/replay/record"
)

// live is a replay that is stopped at a position, or runs up to one.
type live struct {
	cancel    context.CancelFunc
	ctx       context.Context
	interrupt replay.Interruption
	// stops has one value for each stop that is not on a route; plans says how the replay continues.
	stops chan Stop
	plans chan replay.DebugPlan
	calls chan func(*replay.DebugStop)
	// ended is closed when the replay has ended, with err.
	ended chan struct{}
	err   error
	// copied is the copy of the stopped process that was changed; nil: none was. It is used on the thread that traces it.
	copied *replay.Copy
	// signals are those at which it stops, of the ones that are still to come.
	signals SignalSet
}

// Stop is where and why the program has stopped.
type Stop struct {
	Kind   replay.StopKind
	Thread uint32
	// Ordinal is the thread's last event.
	Ordinal uint64
	PC      uint64
	// Signal ended the program, or else Status did, if the kind is StopEnd.
	Signal, Status int
	End            replay.EndKind
	// Watch is the word that was accessed.
	Watch replay.Watch
	// arrivals and sinceEvent are those of replay.DebugStop; state has the general registers.
	arrivals   uint64
	sinceEvent bool
	state      []byte
}

func stopOf(s *replay.DebugStop, plan *replay.DebugPlan) Stop {
	x := Stop{Kind: s.Kind, Thread: s.Moment.Thread, Ordinal: s.Moment.Ordinal, PC: uint64(s.Moment.PC), Signal: s.Signal,
		Status: s.Status, End: s.End, arrivals: s.Arrivals, sinceEvent: s.SinceEvent}
	if s.Kind == replay.StopWatch && s.Watch < len(plan.Watches) {
		x.Watch = plan.Watches[s.Watch]
	}
	if s.Kind == replay.StopInterrupt {
		x.state, _, _ = s.ThreadRegisters(s.Moment.Thread)
	}
	return x
}

// start begins a replay that follows a route and stops at its end.
func start(ctx context.Context, rec *record.Recording, common replay.Common, r *route) *live {
	l := &live{stops: make(chan Stop), plans: make(chan replay.DebugPlan), calls: make(chan func(*replay.DebugStop)), ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	common.Unnamed = true
	var from *replay.Checkpoint
	if r.from != nil {
		from = r.from.checkpoint
	}
	r.marked = time.Now()
	request := replay.DebugRequest{From: from, Common: common, Debugging: replay.Debugging{Events: r.events(), Begin: r.base, Interrupt: &l.interrupt}}
	arrived := false
	var plan replay.DebugPlan
	request.OnStop = func(s *replay.DebugStop) (replay.DebugPlan, error) {
		if !arrived {
			next, there, err := r.next(s)
			if err != nil || !there {
				return next, err
			}
			arrived, plan = true, r.plan()
		}
		var err error
		plan, err = l.hold(s, &plan)
		return plan, err
	}
	go func() {
		defer close(l.ended)
		_, l.err = replay.Run(l.ctx, rec, request)
	}()
	return l
}

// hold reports a stop, and answers calls until the replay is to continue.
func (l *live) hold(s *replay.DebugStop, plan *replay.DebugPlan) (next replay.DebugPlan, err error) {
	defer func() {
		if failed := l.discard(); failed != nil {
			err = failed
		}
	}()
	select {
	case l.stops <- stopOf(s, plan):
	case <-l.ctx.Done():
		return replay.DebugPlan{}, replay.ErrEnough
	}
	for {
		select {
		case call := <-l.calls:
			call(s)
		case next = <-l.plans:
			return next, nil
		case <-l.ctx.Done():
			return replay.DebugPlan{}, replay.ErrEnough
		}
	}
}

// errEnded says that a replay ended where it should not.
var errEnded = errors.New("debug: the replay ended before the position")

// do calls a function with the stopped process, on the thread that traces it.
func (l *live) do(call func(*replay.DebugStop) error) error {
	done := make(chan error, 1)
	select {
	case l.calls <- func(s *replay.DebugStop) { done <- call(s) }:
		return <-done
	case <-l.ended:
		return errEnded
	}
}

// close ends the replay.
func (l *live) close() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.ended
}
