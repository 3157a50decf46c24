package explore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"diagnose/replay/record"
)

// HuntOptions say what to run, and which schedules of it.
type HuntOptions struct {
	// Record has the program, its environment and where recordings are made. What it
	// says of a Hunt, of streams and signals does not count.
	Record record.Options
	// Strategy is HuntPCT unless it says so; Depth is that of PCT (3 if it is 0) and
	// the number of delays (3).
	Strategy record.HuntStrategy
	Depth    int
	// First is the first seed, 1 if it is 0; Seeds how many are tried, as many as
	// there is time for if it is 0.
	First uint64
	Seeds int
	// Length is how many steps a run is taken to have; 0: as many as the run without
	// preemptions.
	Length uint64
	// Budget is how long all may take, 5 minutes if it is 0; Timeout how long a run
	// may, 10 seconds.
	Budget, Timeout time.Duration
	// Jobs is how many run at a time, 1 if it is 0.
	Jobs int
	// NoGlobals has threads preempted nowhere but at their operations, and at the points
	// that a program was built with; without it, where its own code accesses variables
	// that all threads see as well.
	NoGlobals bool
	// FailIf: a run whose output matches has failed, however it ended.
	FailIf *regexp.Regexp
	// FirstOnly: a schedule that fails is not made smaller, and not recorded.
	FirstOnly bool
	// Progress, if set, is told now and then, by one caller at a time.
	Progress func(HuntProgress)
}

// HuntProgress is how far a hunt is.
type HuntProgress struct {
	// Schedules that were run, Hung of them to no end.
	Schedules, Hung int
	// Minimising is set once a schedule failed; Left is how many decisions of it are
	// left.
	Minimising bool
	Left       int
	Elapsed    time.Duration
}

// Failure is what a run has failed by: two runs with the same have failed in the
// same way, as far as a hunt is concerned.
type Failure struct {
	Kind   record.OutcomeKind `json:"kind"`
	Signal int                `json:"signal,omitempty"`
	Status int                `json:"status,omitempty"`
	Stuck  record.Stuck       `json:"stuck,omitempty"`
	// Heap: the agent's heap found a corruption. Output: HuntOptions.FailIf.
	Heap   bool `json:"heap,omitempty"`
	Output bool `json:"output,omitempty"`
	// Child: a child process crashed.
	Child bool `json:"child,omitempty"`
	// Text says it in words.
	Text string `json:"text"`
}

func (f Failure) same(other Failure) bool {
	f.Text, other.Text = "", ""
	return f == other
}

// HuntResult is what came of a hunt. Strategy, Seed, Depth, Length and the program
// make the run again.
type HuntResult struct {
	Strategy record.HuntStrategy `json:"strategy"`
	Depth    int                 `json:"depth"`
	Length   uint64              `json:"length"`
	// Plain is set if the run without a preemption failed already.
	Found bool `json:"found"`
	Plain bool `json:"plain,omitempty"`
	// Seed is the first that failed, by Failure; Schedules how many were run up to
	// it, that one and the plain run included; with several jobs some more were run.
	Seed      uint64   `json:"seed,omitempty"`
	Failure   *Failure `json:"failure,omitempty"`
	Schedules int      `json:"schedules"`
	// Next is the seed to go on with.
	Next uint64 `json:"next"`
	// Hung runs came to no end in time: a thread computed, or waited for the outside.
	Hung int `json:"hung,omitempty"`
	// Distinct is how many schedules differed.
	Distinct int `json:"distinct"`
	// Ready is how many threads could go on at one time, at most; one is nothing to
	// choose from.
	Ready int    `json:"ready"`
	Steps uint64 `json:"steps"` // of the plain run
	// Globals says how many of the instructions that access shared variables threads can
	// be preempted at; nil: none.
	Globals *record.GlobalPoints `json:"global_points,omitempty"`
	Time    float64              `json:"seconds"`
	// Minimal is nil unless one was found.
	Minimal *Minimal `json:"minimal,omitempty"`
}

const (
	huntBudget  = 5 * time.Minute
	huntTimeout = 10 * time.Second
	huntDepth   = 3
	// mostHuntSteps is how many times the plain run's a run may have before it is said to
	// make no progress, and leastHuntSteps how many any may.
	mostHuntSteps, leastHuntSteps = 50, 200000
	// At points of the code a thread is preempted with a chance that makes codePreemptions
	// of it in a run as long as the plain one, but leastChance at least, and at most
	// mostChance, of allChances.
	codePreemptions                     = 8
	leastChance, mostChance, allChances = 1024, 16384, 65536
)

func (o *HuntOptions) setDefaults() {
	if o.Strategy == "" {
		o.Strategy = record.HuntPCT
	}
	if o.Depth == 0 {
		o.Depth = huntDepth
	}
	if o.First == 0 {
		o.First = 1
	}
	if o.Budget == 0 {
		o.Budget = huntBudget
	}
	if o.Timeout == 0 {
		o.Timeout = huntTimeout
	}
	o.Jobs = max(o.Jobs, 1)
}

// Hunt runs a program with one schedule after another until it fails, and finds
// the fewest decisions with which it still does. A program that did not fail is no
// error.
func Hunt(ctx context.Context, o HuntOptions) (*HuntResult, error) {
	o.setDefaults()
	started := time.Now()
	h := &hunt{options: o, started: started, seen: map[uint64]bool{}}
	defer h.close()
	result := &HuntResult{Strategy: o.Strategy, Depth: o.Depth, Next: o.First}
	defer func() { result.Time = time.Since(started).Seconds() }()
	bounded, cancel := context.WithTimeout(ctx, o.Budget)
	defer cancel()
	plain, err := h.plain(bounded)
	if err != nil {
		return nil, err
	}
	result.Steps, result.Ready, result.Length = plain.hunted.Steps, plain.hunted.Ready, o.Length
	if result.Length == 0 {
		result.Length = max(plain.hunted.Steps, 1)
	}
	h.length = result.Length
	h.chance = chanceOf(plain.hunted.Points)
	result.Globals = plain.hunted.Globals
	failed := plain
	if plain.failure == nil {
		if failed, err = h.search(bounded); err != nil {
			return nil, err
		}
	}
	result.Schedules, result.Hung, result.Distinct, result.Next = h.schedules, h.hung, len(h.seen), h.next
	result.Ready = max(result.Ready, h.ready)
	if failed == nil || failed.failure == nil {
		return result, ctx.Err()
	}
	result.Found, result.Failure, result.Plain, result.Seed = true, failed.failure, failed == plain, failed.seed
	if failed != plain {
		result.Schedules = int(failed.seed-o.First) + 2
	}
	if o.FirstOnly {
		return result, nil
	}
	// What was found is made smaller even if the budget is used up.
	result.Minimal, err = h.minimise(ctx, failed)
	return result, err
}

// chanceOf is Hunt.Chance for a program that comes to so many points of its code.
func chanceOf(points uint64) int {
	return int(min(max(codePreemptions*allChances/max(points, 1), leastChance), mostChance))
}

// NoEndError says that a program comes to no end when its threads run one at a
// time.
type NoEndError struct{ Timeout time.Duration }

func (e *NoEndError) Error() string {
	return fmt.Sprintf("explore: the program comes to no end within %v if its threads run one at a time, each until it waits: one computes, waits for the outside, or looks at a variable again and again, which 'diagnose cc' lets others come between", e.Timeout)
}

// hunt is a hunt under way.
type hunt struct {
	options HuntOptions
	started time.Time
	length  uint64
	most    uint64
	chance  int

	mu        sync.Mutex
	schedules int
	hung      int
	ready     int
	next      uint64
	seen      map[uint64]bool // digests of decisions
	told      time.Time
	runners   []*runner
}

// runner returns the n-th of those that run at the same time.
func (h *hunt) runner(n int) (*runner, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.runners) <= n {
		r, err := newRunner(&h.options, len(h.runners))
		if err != nil {
			return nil, err
		}
		h.runners = append(h.runners, r)
	}
	return h.runners[n], nil
}

// close ends its runners.
func (h *hunt) close() {
	for _, r := range h.runners {
		r.close()
	}
}

// plain is the run in which nobody is preempted.
func (h *hunt) plain(ctx context.Context) (*ran, error) {
	r, err := h.runner(0)
	if err != nil {
		return nil, err
	}
	plain, err := r.run(ctx, &record.Hunt{Strategy: record.HuntPlan, Most: 1 << 32, Globals: !h.options.NoGlobals})
	if err != nil {
		return nil, err
	}
	switch {
	case plain.hung && ctx.Err() != nil:
		return nil, ctx.Err()
	case plain.hung:
		return nil, &NoEndError{h.options.Timeout}
	case plain.hunted == nil:
		return nil, errors.New("explore: nothing is known of the program's threads: it was killed, or is not recorded")
	}
	h.most = max(mostHuntSteps*plain.hunted.Steps, leastHuntSteps)
	h.note(plain)
	return plain, nil
}

// note takes a run into the figures.
func (h *hunt) note(r *ran) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.schedules++
	if r.hung {
		h.hung++
	}
	if r.hunted != nil {
		h.seen[digest(r.hunted.Decisions)] = true
		h.ready = max(h.ready, r.hunted.Ready)
	}
	h.tell(HuntProgress{Schedules: h.schedules, Hung: h.hung})
}

const progressEvery = 200 * time.Millisecond

// tell is for whoever holds the lock.
func (h *hunt) tell(p HuntProgress) {
	if h.options.Progress == nil || time.Since(h.told) < progressEvery {
		return
	}
	h.told, p.Elapsed = time.Now(), time.Since(h.started)
	h.options.Progress(p)
}

// search tries seeds in their order, several at the same time. Of those that fail
// the lowest counts, so it does not matter how many.
func (h *hunt) search(ctx context.Context) (*ran, error) {
	s := &seeds{next: h.options.First, left: h.options.Seeds, bounded: h.options.Seeds > 0}
	var wait sync.WaitGroup
	for n := range h.options.Jobs {
		r, err := h.runner(n)
		if err != nil {
			return nil, err
		}
		wait.Go(func() { s.fail(h.work(ctx, r, s)) })
	}
	wait.Wait()
	h.next = s.next
	if ctx.Err() != nil && errors.Is(s.err, ctx.Err()) {
		s.err = nil
	}
	return s.failed, s.err
}

func (h *hunt) work(ctx context.Context, r *runner, s *seeds) error {
	for ctx.Err() == nil {
		seed, ok := s.take()
		if !ok {
			return nil
		}
		x, err := r.run(ctx, h.schedule(seed))
		if err != nil {
			return err
		}
		if ctx.Err() != nil && x.hung {
			s.untake(seed)
			return nil
		}
		x.seed = seed
		h.note(x)
		s.ran(x)
	}
	return nil
}

// schedule is a seed's.
func (h *hunt) schedule(seed uint64) *record.Hunt {
	return &record.Hunt{Strategy: h.options.Strategy, Seed: seed, Depth: h.options.Depth, Length: h.length, Most: h.most,
		Chance: h.chance, Globals: !h.options.NoGlobals}
}

// seeds are handed out in their order.
type seeds struct {
	mu      sync.Mutex
	next    uint64
	left    int
	bounded bool
	failed  *ran
	err     error
}

func (s *seeds) take() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || s.err != nil || s.bounded && s.left == 0 {
		return 0, false
	}
	s.left--
	s.next++
	return s.next - 1, true
}

// untake is for a seed whose run was given up.
func (s *seeds) untake(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = min(s.next, seed)
}

func (s *seeds) ran(x *ran) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.failure != nil && (s.failed == nil || x.seed < s.failed.seed) {
		s.failed = x
	}
}

func (s *seeds) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}
