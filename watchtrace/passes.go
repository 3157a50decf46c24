package watchtrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
)

// seen holds the results of one pass.
type seen struct {
	hits   []replay.Hit
	result *replay.Result
	err    error
	// hot is the watch that used up the budget of hits; -1: none did.
	hot int
	// dropped counts the earlier hits, which were not kept.
	dropped uint64
	// since is the number of the first hit after Options.From.
	since uint64
	// contexts are named while the process exists.
	contexts map[contextKey]evidence.Context
}

var errBudget = errors.New("watchtrace: the budget of hits is used up")

// tracer runs the passes of a plan.
type tracer struct {
	plan *Plan
	mu   sync.Mutex
	done int
	hits uint64
	// names has the contexts that a pass has named.
	names *namer
	// waiting are the threads that wait for locks at the end, which one pass
	// examines.
	waiting []waiting
	looked  bool
	// busy are the numbers of pages that were accessed too often for passes that protect them.
	busy map[uint64]bool
}

// Trace replays the passes of the plan, several at once, and merges their hits.
// A pass whose words are accessed more often than the budget allows is replayed
// without the busiest of them.
func (p *Plan) Trace(ctx context.Context) (*evidence.AccessLog, error) {
	started := time.Now()
	t := &tracer{plan: p, busy: map[uint64]bool{}}
	names, err := newNamer(p.rec, p.opts.Image)
	if err != nil {
		return nil, err
	}
	defer names.close()
	t.names = names
	passes, err := t.runTimed(ctx)
	if err != nil {
		return nil, err
	}
	m := newMerger(p, names)
	for i, s := range passes {
		if err := m.addPass(i, s); err != nil {
			return nil, err
		}
	}
	if err := t.replayToEnd(ctx); err != nil {
		return nil, err
	}
	m.waits(t.waiting)
	log := m.finish()
	log.Nanoseconds = time.Since(started).Nanoseconds()
	return log, nil
}

// runTimed runs all passes in the timing in which the recording replays: passes
// whose code between two events runs at different times could not be merged. If
// the timing is not known, the usual one works mostly.
func (t *tracer) runTimed(ctx context.Context) ([]*seen, error) {
	p := t.plan
	known, err := p.rec.Timing()
	if err != nil {
		return nil, err
	}
	if p.timing = known; known == "" {
		p.timing = record.TimingEager
	}
	passes, err := t.runPasses(ctx)
	if err != nil || known != "" || reached(passes) {
		return passes, err
	}
	p.timing = record.TimingLazy
	t.done = 0
	lazy, err := t.runPasses(ctx)
	if err != nil {
		return nil, err
	}
	if !reached(lazy) && events(lazy) < events(passes) {
		p.timing = record.TimingEager
		return passes, nil
	}
	if reached(lazy) {
		// If this cannot be stored, the next trace finds it again.
		_ = p.rec.SetTiming(record.TimingLazy)
	}
	return lazy, nil
}

// reached reports whether all passes reached the recorded end.
func reached(passes []*seen) bool {
	return !slices.ContainsFunc(passes, func(s *seen) bool {
		return s.result != nil && (s.result.End == replay.EndDiverged || s.result.End == replay.EndStuck)
	})
}

func events(passes []*seen) uint64 {
	n := uint64(0)
	for _, s := range passes {
		if s.result != nil {
			n += s.result.Events
		}
	}
	return n
}

// runPasses replays the passes. Passes that are added while others run are appended to
// the plan.
func (t *tracer) runPasses(ctx context.Context) ([]*seen, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var passes []*seen
	next := 0
	for next < len(t.plan.Passes) {
		end := len(t.plan.Passes)
		passes = append(passes, make([]*seen, end-next)...)
		work := make(chan int)
		var workers sync.WaitGroup
		for range min(t.plan.opts.Processes, end-next) {
			workers.Go(func() {
				for i := range work {
					s, err := t.pass(ctx, i)
					if err != nil {
						cancel(err)
					}
					passes[i] = s
				}
			})
		}
		for ; next < end; next++ {
			work <- next
		}
		close(work)
		workers.Wait()
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
	return passes, nil
}

// pass replays one pass, repeatedly if needed: without a variable that is too
// busy, or with fewer words if the replay needs a debug register.
func (t *tracer) pass(ctx context.Context, i int) (*seen, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		t.mu.Lock()
		x := t.plan.Passes[i]
		t.mu.Unlock()
		if len(x.Watches) == 0 {
			return &seen{}, nil
		}
		if x.Known || t.toKnown(i, nil) {
			return t.known(ctx, i)
		}
		s := t.replay(ctx, x, i == 0, t.plan.opts.Backend)
		if t.plan.opts.Backend == "" && s.hot < 0 && incomplete(s) {
			again := t.replay(ctx, x, i == 0, replay.BackendPtrace)
			if cannot := (*replay.UnsupportedError)(nil); !errors.As(again.err, &cannot) {
				s = again
			}
		}
		var registers *replay.RegisterError
		var stops *replay.StopsError
		switch {
		case errors.As(s.err, &stops):
			t.toKnown(i, s)
		case errors.As(s.err, &registers) && len(x.Watches) > 1:
			t.split(i)
		case s.hot >= 0:
			t.drop(i, s)
		case s.err != nil && s.result == nil:
			return nil, s.err
		default:
			t.began(i, s)
			t.tell(0, true)
			return s, nil
		}
	}
}

// began notes where the part that was asked about begins among the hits of a pass.
func (t *tracer) began(i int, s *seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan.Passes[i].since = s.since
}

// incomplete reports whether the fastest back end has missed accesses: it
// cannot make the process wait. Another back end would not miss them, if it works here.
func incomplete(s *seen) bool {
	var registers *replay.RegisterError
	return s.result == nil && s.err != nil && !errors.As(s.err, &registers) || s.result != nil && s.result.Lost > 0
}

// split moves the last word of a pass to a pass of its own.
func (t *tracer) split(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	words := t.plan.Passes[i].words()
	last := len(words) - 1
	locks := t.plan.Passes[i].locks
	kept, moved := passOf(words[:last]), passOf(words[last:])
	kept.locks, moved.locks = locks, locks
	t.plan.Passes[i] = kept
	t.plan.Passes = append(t.plan.Passes, moved)
}

// drop takes the busiest variable out of a pass, with all its words.
func (t *tracer) drop(i int, s *seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pass := t.plan.Passes[i]
	words := pass.words()
	hot := words[s.hot].variable
	words = slices.DeleteFunc(words, func(w word) bool { return w.variable == hot })
	locks := t.plan.Passes[i].locks
	t.plan.Passes[i] = passOf(words)
	t.plan.Passes[i].locks = locks
	if locks {
		t.limit(evidence.Limit{Code: evidence.LimitBusyLock, Addr: t.plan.history.locks[hot].addr})
		return
	}
	v := &t.plan.Variables[hot]
	if t.plan.opts.Known && t.plan.opts.Backend == "" {
		t.plan.know(pass, hot, s)
		return
	}
	where := ""
	if n := len(s.hits); n > 0 {
		where = fmt.Sprintf(" up to event %d of %d", s.hits[n-1].Position, t.plan.history.events)
	}
	v.Untraced = fmt.Sprintf("it is accessed too often: more than %d times%s", t.plan.opts.Hits/2, where)
}

// limit adds a limit once, for the passes may run in two timings. It is called with
// mu held.
func (t *tracer) limit(l evidence.Limit) { t.plan.limits = evidence.AddLimit(t.plan.limits, l) }

// replay runs a pass, the first of which also looks at the end.
func (t *tracer) replay(ctx context.Context, x Pass, first bool, backend replay.Backend) *seen {
	s := &seen{hot: -1}
	counts := make([]uint64, len(x.Watches))
	told := 0
	o := t.plan.replayOptions(x)
	if !x.Known {
		if o.Backend = backend; t.plan.opts.Known && !x.locks {
			o.MostStops = t.plan.opts.PageStops
		}
	}
	b := t.plan.bound(&o)
	o.OnHit = func(h *replay.Hit) error {
		b.see(h)
		counts[h.Watch]++
		s.hits = append(s.hits, *h)
		if x.Known {
			told = s.keepLast(t.plan.opts.Hits, told)
		}
		if len(s.hits)-told >= 1024 {
			t.tell(uint64(len(s.hits)-told), false)
			told = len(s.hits)
		}
		if most := t.plan.opts.Hits; x.Known && s.dropped > most*knownBudget || !x.Known && uint64(len(s.hits)) > most {
			s.hot = slices.Index(counts, slices.Max(counts))
			return errBudget
		}
		return nil
	}
	if first || t.names.process == nil {
		o.AtEnd = func(end *replay.Stopped) (err error) {
			if first {
				t.looked = true
				if t.waiting, err = t.plan.atEnd(end); err != nil {
					return err
				}
			}
			if t.names.process != nil {
				return nil
			}
			p, err := end.Process()
			if err != nil {
				return err
			}
			s.contexts = nameAll(p, s.hits)
			return nil
		}
	}
	s.result, s.err = replay.Run(ctx, t.plan.rec, o)
	s.since = b.first()
	t.tell(uint64(len(s.hits)-told), false)
	return s
}

// replayOptions returns the options of every replay of a pass.
func (p *Plan) replayOptions(x Pass) replay.WatchRequest {
	o := replay.WatchRequest{Common: replay.Common{Timing: p.timing, Image: p.opts.Image}, Watching: replay.Watching{Watches: x.Watches, Locks: p.history.words()}}
	if x.Known {
		o.Backend, o.Probes, o.MostStops = replay.BackendProbe, x.instructions, mostStops
	}
	return o
}

// tell reports progress.
func (t *tracer) tell(hits uint64, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hits += hits
	if done {
		t.done++
	}
	if f := t.plan.opts.Progress; f != nil {
		f(Progress{Done: t.done, Passes: len(t.plan.Passes), Hits: t.hits})
	}
}
