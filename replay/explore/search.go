package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// Options of a search.
type Options struct {
	// Budget is the time limit (default 5 minutes). Attempts is the maximum number of replays;
	// 0: as many as the time allows.
	Budget   time.Duration
	Attempts int
	// Resume continues from the result of an earlier search that did not reach the recorded
	// end.
	Resume bool
	// Approach is the time limit, within Budget, for making the state at the recorded place equal
	// to the core (default 2 minutes).
	Approach time.Duration
	// Progress, if set, is called before each attempt.
	Progress func(Progress)
	// Tried, if set, is called with the result of each attempt.
	Tried func(Tried)
	// Image says how to find the files of the process.
	Image image.Options
}

// Progress is the progress of a search.
type Progress struct {
	Attempts      int
	Events, Total uint64 // of the furthest replay
	Level         Level
	Window        Window
}

// String formats a line for the user.
func (p Progress) String() string {
	return fmt.Sprintf("searching, attempt %d, furthest event %d of %d, events %d to %d, %s", p.Attempts+1, p.Events, p.Total, p.Window.From, p.Window.To, p.Level)
}

// Tried is one attempt: it did so many events and ended with Err, or at the recorded end.
type Tried struct {
	Level       Level
	Timing      record.Timing
	Preemptions []eventlog.Preemption
	Events      uint64
	Same        bool
	Err         error
}

// Level is the granularity of a search.
type Level string

// The levels.
const (
	LevelPlain  Level = "plain"  // nothing is preempted
	LevelCoarse Level = "coarse" // threads are preempted after events
	LevelFine   Level = "fine"   // right before an access to memory, or while they spin
)

// Window is the examined part of the order, by positions.
type Window struct{ From, To uint64 }

// Result is the result of a search.
type Result struct {
	// Reproduced: a replay reaches the recorded end, with the same failure. OtherState counts the
	// ranges of memory, registers and mappings that differ from the core then.
	Reproduced bool
	OtherState int
	// Timing and Preemptions are those of the furthest replay, Replay and Err its result.
	Timing      record.Timing
	Preemptions []eventlog.Preemption
	Replay      *replay.Result
	Err         error
	// Attempts counts replays, ByLevel those of each level, and Traces those that only traced
	// memory accesses.
	Attempts int
	ByLevel  map[Level]int
	Traces   int
	// Level is the finest level that was needed.
	Level Level
	// Remembered counts plans that were not tried because an earlier search had tried them.
	Remembered int
	// CacheHits counts divergences that were passed in the same way as an earlier one.
	CacheHits int
	// Events is how many events the furthest replay did, of Total. Window is the part of the
	// order that was examined last.
	Events, Total uint64
	Window        Window
	// Unexplored says which plans were not tried when the search ended without success.
	Unexplored string
	Time       time.Duration
}

const defaultBudget = 5 * time.Minute

// Search looks for the preemptions with which a replay reaches the recorded end, and writes
// them to the recording. The source is Lee et al., Infrastructure-Free Logging and Replay of
// Concurrent Execution on Multiple Cores, ECOOP 2014, sections 2, 4 and 5: where a replay
// diverges from the recording, the code around that place runs in another order, first by whole
// steps between two events, then by single accesses. An order that gets further is kept.
//
// The error is that of a replay that is not possible at all, or of the context. It is no error
// if nothing is found.
func Search(ctx context.Context, rec *record.Recording, opts Options) (*Result, error) {
	started := time.Now()
	s := &search{rec: rec, opts: opts, result: &Result{ByLevel: map[Level]int{}, Level: LevelPlain}, known: newCache(), attempts: map[string]*outcome{}, traced: map[string]traced{}}
	if s.opts.Budget == 0 {
		s.opts.Budget = defaultBudget
	}
	s.deadline = started.Add(s.opts.Budget)
	var err error
	if s.order, err = readOrder(rec.Log); err != nil {
		return nil, err
	}
	s.result.Total = s.order.total()
	if s.core, err = hasCore(rec); err != nil {
		return nil, err
	}
	err = s.runSearch(ctx)
	if errors.Is(err, errSpent) {
		err = nil
	}
	if err == nil && s.best != nil {
		err = s.approach(ctx)
	}
	s.result.Time = time.Since(started)
	if err != nil || s.best == nil {
		return nil, err
	}
	return s.finish(ctx)
}

// errSpent ends a search whose budget is spent.
var errSpent = errors.New("explore: the budget is spent")

type search struct {
	rec      *record.Recording
	opts     Options
	deadline time.Time
	order    *order
	result   *Result
	known    cache
	attempts map[string]*outcome // by the plan's key
	traced   map[string]traced
	library  map[evidence.Addr]function
	locks    map[evidence.Addr]bool // words of synchronisation objects
	raced    []evidence.Addr        // words whose accesses were reversed with success
	best     *outcome
	// looked describes the tried plans and those left to try.
	looked string
	before int  // attempts of earlier searches
	core   bool // the recording has one
	// comparing: replays that diverge are compared with the core, too.
	comparing bool
	memory
	// cut: a window was too long to be stepped completely. unwatched: not all words that
	// changed in one were watched. untraced is why one was not traced at all.
	cut, unwatched bool
	untraced       error
}

// outcome is the result of a replay.
type outcome struct {
	plan   plan
	result *replay.Result
	err    error
	same   bool // the recorded end and failure
	// unlike is how the state differs from the core: where it diverged, if that was compared, or at
	// the recorded end. nil: it does not differ, or there is no core.
	unlike *unlike
	events uint64
	// thread and ordinal are of the event after which it diverged.
	thread  uint32
	ordinal uint64
	// stuck: the thread computes without an end, at pc. endless: that is certain.
	stuck, endless bool
	pc             evidence.Addr
	why            signature
}

// runSearch searches with the timing that gets further, then with the other.
func (s *search) runSearch(ctx context.Context) error {
	earlier, err := s.resume(ctx)
	if err != nil {
		return err
	}
	if earlier != nil && earlier.same {
		s.best = earlier
		return nil
	}
	var bases []*outcome
	for _, timing := range []record.Timing{record.TimingEager, record.TimingLazy} {
		o, err := s.attempt(ctx, plan{timing: timing}, LevelPlain)
		if err != nil {
			return err
		}
		if o.same && o.unlike == nil {
			s.best = o
			return nil
		}
		bases = append(bases, o)
	}
	for _, o := range bases {
		if o.same {
			s.best = o
			return nil
		}
	}
	// Only an eager replay can order single accesses. So the lazy timing is first only if it
	// gets further without reaching the end.
	if lazy := bases[1]; lazy.events > bases[0].events && lazy.events < s.result.Total {
		bases[0], bases[1] = bases[1], bases[0]
	}
	if earlier != nil && earlier.events >= bases[0].events {
		bases = append([]*outcome{earlier}, bases...)
	}
	s.best = bases[0]
	for _, e := range efforts {
		for _, base := range bases {
			if base.events > s.best.events {
				s.best = base
			}
			d := &descent{s, e, map[string]bool{}}
			if found, err := d.beyond(ctx, base); found != nil || err != nil {
				return err
			}
		}
	}
	s.looked = "nothing is left that is looked at"
	return s.approachDivergence(ctx)
}

// resume returns the result of an earlier search; nil: there is none.
func (s *search) resume(ctx context.Context) (*outcome, error) {
	if !s.opts.Resume {
		return nil, nil
	}
	f, err := s.rec.Searched()
	if f == nil || err != nil {
		return nil, err
	}
	s.before = f.Attempts
	s.recall(f)
	return s.attempt(ctx, plan{timing: f.Timing, list: f.Preemptions}, LevelCoarse)
}

// attempt makes one replay, unless it was made before. It checks the budget first.
func (s *search) attempt(ctx context.Context, p plan, level Level) (*outcome, error) {
	if o := s.attempts[p.key()]; o != nil && (!s.comparing || o.compared()) {
		return o, nil
	}
	if time.Now().After(s.deadline) || s.opts.Attempts > 0 && s.result.Attempts >= s.opts.Attempts {
		return nil, errSpent
	}
	if s.opts.Progress != nil {
		at := Progress{Attempts: s.result.Attempts, Total: s.result.Total, Level: level, Window: s.result.Window}
		if s.best != nil {
			at.Events = s.best.events
		}
		s.opts.Progress(at)
	}
	s.result.Attempts++
	s.result.ByLevel[level]++
	o, err := s.replay(ctx, p, true)
	if s.opts.Tried != nil && err == nil {
		s.opts.Tried(Tried{level, p.timing, p.list, o.events, o.same, o.err})
	}
	s.attempts[p.key()] = o
	s.note(o)
	return o, err
}

// sleeping is how long all threads of a replay may wait.
const sleeping = 2 * time.Second

// patience is how long a replay may run without an event while a thread computes, if there is
// no other sign that it spins.
func patience(rec *record.Recording) time.Duration {
	times := rec.Manifest.Times
	return time.Second + 5*time.Duration(times.UserNS+times.SystemNS)
}

// replay makes one replay. unnamed leaves out names, which only a reported error needs.
func (s *search) replay(ctx context.Context, p plan, unnamed bool) (*outcome, error) {
	o := &outcome{plan: p}
	options := replay.PlainRequest{Common: replay.Common{Timing: p.timing, Preemptions: p.list, Image: s.opts.Image, Sleeping: sleeping, Computing: patience(s.rec), Unnamed: unnamed,
		AtEnd: func(at *replay.Stopped) error { return s.noteStopped(o, at) }}}
	if p.list == nil {
		options.Preemptions = []eventlog.Preemption{}
	}
	o.result, o.err = replay.Run(ctx, s.rec, options)
	if o.result == nil {
		// An order that no thread ever ran in may be more than the tool can replay.
		var unusable *replay.InputError
		if p.list == nil || ctx.Err() != nil || errors.As(o.err, &unusable) {
			return nil, o.err
		}
		return o, nil
	}
	o.events = o.result.Events
	o.judge(&s.rec.Manifest.Outcome)
	return o, nil
}

// compared reports whether the state of an outcome is known that can be compared.
func (o *outcome) compared() bool {
	return o.same || o.unlike != nil || o.result == nil || o.result.End != replay.EndDiverged
}

// noteStopped notes where threads are that compute without an end, or how the state differs where
// the replay diverged.
func (s *search) noteStopped(o *outcome, at *replay.Stopped) error {
	if s.core && at.Ended() || s.comparing && at.Diverged() {
		c, err := at.Compare()
		if err != nil {
			return err
		}
		o.unlike = unlikeOf(c)
	}
	if e := at.Stuck(); e != nil && e.Computing {
		pc, err := at.ThreadPC(e.Holder)
		if err != nil {
			return err
		}
		o.stuck, o.endless, o.pc = true, e.Endless, pc
	}
	return nil
}

// judge determines where the replay diverged.
func (o *outcome) judge(recorded *record.Outcome) {
	var d *replay.DivergenceError
	var stuck *replay.StuckError
	switch {
	case errors.As(o.err, &d):
		o.thread, o.ordinal = d.Moment.Thread, d.Moment.Ordinal-1
		o.why = signatureOf(d)
	case errors.As(o.err, &stuck):
		o.thread = stuck.Due
		if stuck.Computing {
			o.thread = stuck.Holder
		}
		for _, t := range stuck.Threads {
			if t.Thread == o.thread {
				o.ordinal = t.Ordinal
				o.why = signature{reason: "stuck", got: evidence.Addr(o.pc)}
			}
		}
	case o.err == nil:
		m := o.result.Moment
		// A sent signal reached the thread in the engine.
		if o.same = recorded.FaultAddr == nil || recorded.PC == nil || *recorded.PC == m.PC; !o.same {
			o.unlike = nil
		}
		o.thread, o.ordinal = m.Thread, m.Ordinal
		o.why = signature{reason: "elsewhere", got: m.PC}
	}
}

// finish removes unneeded preemptions, and stores the result.
func (s *search) finish(ctx context.Context) (*Result, error) {
	r := s.result
	if s.best.same && len(s.best.plan.list) > 0 {
		s.reduce(ctx)
	} else if !s.best.same {
		if named, err := s.replay(ctx, s.best.plan, false); err == nil && named.events == s.best.events {
			s.best = named
		}
	}
	r.Level = s.best.plan.level()
	r.Reproduced, r.Replay, r.Err = s.best.same, s.best.result, s.best.err
	if u := s.best.unlike; u != nil && s.best.same {
		r.OtherState = u.places
	}
	r.Timing, r.Preemptions, r.Events = s.best.plan.timing, s.best.plan.list, s.best.events
	if !r.Reproduced {
		r.Unexplored = s.looked
		if s.cut {
			r.Unexplored += fmt.Sprintf("; of windows with more than %d instructions, only the first of each thread were looked at, and those that access words which change", mostSteps)
		}
		if s.unwatched {
			r.Unexplored += fmt.Sprintf(", of which there were more than %d in one", mostWatched)
		}
		if s.untraced != nil {
			r.Unexplored += fmt.Sprintf("; a window could not be traced (%v)", s.untraced)
		}
		complete, err := s.rec.Found()
		if complete != nil || err != nil {
			return r, err
		}
		f := s.found(r, true)
		f.Tried = s.tried()
		return r, s.rec.SetFound(f)
	}
	if len(r.Preemptions) == 0 && r.OtherState == 0 {
		if r.Timing == record.TimingEager {
			return r, nil
		}
		return r, s.rec.SetTiming(r.Timing)
	}
	return r, s.rec.SetFound(s.found(r, false))
}

func (s *search) found(r *Result, partial bool) *record.Found {
	return &record.Found{OtherState: r.OtherState, Timing: r.Timing, Preemptions: r.Preemptions, Partial: partial, By: "search", Attempts: s.before + r.Attempts, Level: string(r.Level)}
}

// hasCore reports whether a recording has a core to compare with.
func hasCore(rec *record.Recording) (bool, error) {
	_, err := rec.Core()
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// reduce tries to remove each preemption. It takes at most a part of the search's time.
func (s *search) reduce(ctx context.Context) {
	until := time.Now().Add(max(s.opts.Budget/10, time.Second))
	for i := len(s.best.plan.list) - 1; i >= 0 && time.Now().Before(until); i-- {
		s.result.Attempts++
		s.result.ByLevel[s.best.plan.level()]++
		o, err := s.replay(ctx, s.best.plan.without(i), true)
		if err == nil && o.same && !s.best.unlike.closer(o.unlike) {
			s.best = o
		}
	}
}

// SearchCanHelp reports whether a replay that ended with this result and error may get closer to the
// recording with other preemptions: the program has threads, and the replay diverged or is stuck, where
// neither files nor the log are the reason, or its end differs from the core.
func SearchCanHelp(rec *record.Recording, r *replay.Result, err error) bool {
	var d *replay.DivergenceError
	var stuck *replay.StuckError
	switch {
	case errors.As(err, &d):
		switch d.Reason {
		case replay.DiffersMapping, replay.DiffersLog, replay.DiffersThread:
			return false
		}
	case errors.As(err, &stuck):
	case err != nil || r == nil || unlikeOf(r.Comparison) == nil:
		return false
	}
	return threaded(rec)
}
