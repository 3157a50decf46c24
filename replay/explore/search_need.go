package explore

import (
	"context"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// shortApproach is Options.Approach where the user asked for a cause.
const shortApproach = 20 * time.Second

// Prepare makes sure that replays of a recording reach its end, in the state of its core: if one
// does not, it searches.
// It returns nil without an error if no search was needed, or none can help. The error is that
// of Search.
func Prepare(ctx context.Context, rec *record.Recording, opts Options) (*Result, error) {
	if found, err := rec.Found(); found != nil || err != nil || !threaded(rec) {
		return nil, err
	}
	if opts.Budget == 0 {
		opts.Budget = defaultBudget
	}
	started := time.Now()
	inTime, cancel := context.WithTimeout(ctx, opts.Budget)
	defer cancel()
	core, err := hasCore(rec)
	if err != nil {
		return nil, err
	}
	first, err := replay.Run(inTime, rec, replay.PlainRequest{Common: replay.Common{Image: opts.Image, Sleeping: sleeping, Computing: patience(rec), Unnamed: true}, Verify: core})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	left := opts.Budget - time.Since(started)
	if first == nil || left <= 0 || !SearchCanHelp(rec, first, err) {
		return nil, nil // the next replay reports the reason
	}
	opts.Budget = left
	if opts.Approach == 0 {
		opts.Approach = shortApproach
	}
	return Search(ctx, rec, opts)
}

// Need is a preemption of a recording, and the results of replays without it.
type Need struct {
	eventlog.Preemption
	// At is the address of the instruction or, if the preemption is after an event, the site of
	// its call. After is that event's text, empty at an instruction.
	At    evidence.Addr
	After string
	// Last is the last event that is done before the thread continues; nil: there is none.
	Last *Done
	// Failed of Runs replays without it, and with the others, failed as recorded.
	Failed, Runs int
}

// Done is an event that was done.
type Done struct {
	Thread uint32
	What   string
	Site   evidence.Addr
}

// Needs returns the preemptions with which a recording is replayed, in the order of the
// threads' events; nil: it is replayed without. failed of runs replays without any of them
// failed as recorded. times is how often the replay without each is made. No replay begins
// after the deadline, so Runs may be smaller.
func Needs(ctx context.Context, rec *record.Recording, opts image.Options, times int, deadline time.Time) (list []Need, failed, runs int, err error) {
	found, err := rec.Found()
	if found == nil || len(found.Preemptions) == 0 || err != nil {
		return nil, 0, 0, err
	}
	s := &search{rec: rec, opts: Options{Image: opts}, result: &Result{}}
	if s.order, err = readOrder(rec.Log); err != nil {
		return nil, 0, 0, err
	}
	whole := plan{timing: found.Timing, list: found.Preemptions}
	try := func(p plan) (failed, runs int, err error) {
		for ; runs < times && time.Now().Before(deadline); runs++ {
			o, err := s.replay(ctx, p, true)
			if err != nil {
				return 0, 0, err
			}
			if o.same {
				failed++
			}
		}
		return failed, runs, nil
	}
	if failed, runs, err = try(plan{timing: found.Timing}); err != nil {
		return nil, 0, 0, err
	}
	for i, p := range found.Preemptions {
		n := s.describe(p)
		if len(found.Preemptions) == 1 {
			n.Failed, n.Runs = failed, runs
		} else if n.Failed, n.Runs, err = try(whole.without(i)); err != nil {
			return nil, 0, 0, err
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list, func(a, b Need) int {
		return int(int64(s.order.position(a.Thread, a.Ordinal)) - int64(s.order.position(b.Thread, b.Ordinal)))
	})
	return list, failed, runs, nil
}

// describe describes the place of a preemption, without replays.
func (s *search) describe(p eventlog.Preemption) Need {
	n := Need{Preemption: p, At: p.PC}
	if at := s.order.position(p.Thread, p.Ordinal); at != 0 && p.Class != eventlog.PointPC {
		n.At, n.After = s.order.eventAt(at).site, s.order.eventAt(at).text()
	}
	if until := min(p.Until, s.order.total()); until > 0 {
		e := s.order.eventAt(until)
		n.Last = &Done{e.thread, e.text(), e.site}
	}
	return n
}

// text names an event in a phrase: "getuid()", "mutex".
func (e *logged) text() string {
	if e.kind == eventlog.KindSyscall {
		return eventlog.SyscallName(e.object) + "()"
	}
	return e.kind.String()
}

// threaded reports whether the recorded program had threads.
func threaded(rec *record.Recording) bool {
	for e := range rec.Log.Ordered() {
		if e != nil && e.Kind == eventlog.KindCreate && e.Result == 0 {
			return true
		}
	}
	return false
}
