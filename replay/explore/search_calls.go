package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// called returns the preemptions after calls of functions that synchronise and are no event.
// They are found at full speed, so the window may have any length.
func (s *search) called(ctx context.Context, o *outcome, w *window) ([]candidate, error) {
	functions := s.synchronising()
	if len(functions) == 0 {
		return nil, nil
	}
	x, err := s.remember(fmt.Sprint("calls ", o.plan.key(), w.from(), w.to()), func() (traced, error) {
		s.looked = fmt.Sprintf("the calls between the events %d and %d", w.from(), w.to())
		t := &trace{}
		_, err := s.replayTraced(ctx, replay.StepRequest{Common: s.looking(o.plan), Stepping: replay.Stepping{
			Windows: w.threads(), Calls: functions, On: func(x *replay.Stepped) { t.calls = append(t.calls, *x) }}})
		if err != nil {
			return traced{}, err
		}
		return traced{points: s.points(o, t)}, nil
	})
	return x.points, err
}

// looking returns the common part of the requests for replayTraced.
func (s *search) looking(p plan) replay.Common {
	c := replay.Common{Image: s.opts.Image, Timing: p.timing, Preemptions: p.list, Unnamed: true, Sleeping: sleeping, Computing: patience(s.rec)}
	if c.Preemptions == nil {
		c.Preemptions = []eventlog.Preemption{}
	}
	return c
}

// replayTraced makes a replay that only observes.
func (s *search) replayTraced(ctx context.Context, request replay.Request) (*replay.Result, error) {
	if time.Now().After(s.deadline) {
		return nil, errSpent
	}
	s.result.Traces++
	inTime, cancel := context.WithDeadline(ctx, s.deadline)
	defer cancel()
	r, err := replay.Run(inTime, s.rec, request)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case inTime.Err() != nil:
		return nil, errSpent
	case r == nil:
		var missed *replay.MomentError
		if errors.As(err, &missed) {
			return nil, missed
		}
		s.untraced = err // other windows may be traced
	}
	return r, nil
}

// synchronising returns the functions whose calls are traced, the most important first: there
// are few debug registers. It leaves out functions of a kind that the log has no event of.
func (s *search) synchronising() []evidence.Addr {
	used := map[eventlog.Kind]bool{}
	for i := range s.order.events {
		used[s.order.events[i].kind] = true
	}
	library := s.functions()
	var list []evidence.Addr
	for addr, f := range library {
		if used[f.kind] {
			list = append(list, addr)
		}
	}
	rank := map[does]int{gives: 1, takes: 2, signals: 3}
	slices.SortFunc(list, func(a, b evidence.Addr) int {
		return cmp.Or(cmp.Compare(rank[library[a].does], rank[library[b].does]), cmp.Compare(a, b))
	})
	return list
}
