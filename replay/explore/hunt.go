package explore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// HuntOptions say what to run, and which schedules to try.
type HuntOptions struct {
	// Record has the program, its environment and the directory for recordings. Its Hunt,
	// streams and signals are ignored.
	Record recorder.Options
	// Strategy is HuntPCT by default. Depth is the depth of PCT (default 3) and the number of
	// delays (default 3).
	Strategy record.HuntStrategy
	Depth    int
	// First is the first seed (default 1). Seeds is how many are tried; 0: as many as the time
	// allows.
	First uint64
	Seeds int
	// Length is the assumed number of steps of a run; 0: that of the run without preemptions.
	Length uint64
	// Budget is the time limit of the hunt (default 5 minutes), Timeout that of a run (default
	// 10 seconds). What is done for a schedule that failed takes at most a tenth of Budget more,
	// unless only its recording does not fit in.
	Budget, Timeout time.Duration
	// Jobs is the number of concurrent runs (default 1).
	Jobs int
	// NoGlobals preempts threads only at their operations, and at the points that the program
	// was built with. Without it threads are also preempted where the program's own code
	// accesses variables shared by all threads.
	NoGlobals bool
	// FailIf: a run whose output matches has failed, however it ended.
	FailIf *regexp.Regexp
	// FirstOnly: a failing schedule is not minimised and not recorded.
	FirstOnly bool
	// Progress, if set, is called from time to time, by one caller at a time.
	Progress func(HuntProgress)
}

// HuntProgress is the progress of a hunt.
type HuntProgress struct {
	// Schedules were run; Hung of them did not end in time.
	Schedules, Hung int
	// Minimising is set once a schedule failed. Left is how many of its decisions are left.
	Minimising bool
	Left       int
	Elapsed    time.Duration
}

// Failure describes how a run failed. To a hunt, two runs with equal descriptions failed in the
// same way.
type Failure struct {
	Kind   record.OutcomeKind `json:"kind"`
	Signal int                `json:"signal,omitempty"`
	Status int                `json:"status,omitempty"`
	Stuck  record.Stuck       `json:"stuck,omitempty"`
	// Heap: the agent's heap found a corruption. Output: the output matched HuntOptions.FailIf.
	Heap   bool `json:"heap,omitempty"`
	Output bool `json:"output,omitempty"`
	// Child: a child process crashed.
	Child bool `json:"child,omitempty"`
	// Text describes the failure.
	Text string `json:"text"`
}

func (f Failure) same(other Failure) bool {
	f.Text, other.Text = "", ""
	return f == other
}

// HuntResult is the result of a hunt. Strategy, Seed, Depth, Length and the program reproduce
// the run.
type HuntResult struct {
	Strategy record.HuntStrategy `json:"strategy"`
	Depth    int                 `json:"depth"`
	Length   uint64              `json:"length"`
	// Plain is set if the run without preemptions already failed.
	Found bool `json:"found"`
	Plain bool `json:"plain,omitempty"`
	// Seed is the first seed that failed, with Failure. Schedules is how many were run up to
	// it, including that one and the plain run. With several jobs a few more were run.
	Seed      uint64   `json:"seed,omitempty"`
	Failure   *Failure `json:"failure,omitempty"`
	Schedules int      `json:"schedules"`
	// Next is the seed to continue with.
	Next uint64 `json:"next"`
	// Hung runs did not end in time: a thread computed, or waited for an event outside of the
	// process.
	Hung int `json:"hung,omitempty"`
	// Distinct is the number of different schedules.
	Distinct int `json:"distinct"`
	// Ready is the largest number of threads that could run at one time. If it is one, there is
	// no choice.
	Ready int    `json:"ready"`
	Steps uint64 `json:"steps"` // of the plain run
	// Globals says at how many of the instructions that access shared variables threads can be
	// preempted; nil: at none.
	Globals *record.GlobalPoints `json:"global_points,omitempty"`
	Time    float64              `json:"seconds"`
	// Minimal is nil unless a minimal schedule was found.
	Minimal *Minimal `json:"minimal,omitempty"`
}

const (
	huntBudget  = 5 * time.Minute
	huntTimeout = 10 * time.Second
	huntDepth   = 3
	// mostHuntSteps is how many times the steps of the plain run a run may have before it
	// counts as making no progress. leastHuntSteps is how many steps any run may have.
	mostHuntSteps, leastHuntSteps = 50, 200000
	// The chance of a preemption at a point of the code gives codePreemptions of them in a run
	// as long as the plain one. It is at least leastChance and at most mostChance, of
	// allChances.
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

// Hunt runs a program with one schedule after another until it fails, and then finds the fewest
// decisions with which it still fails. It is no error if the program does not fail.
func Hunt(ctx context.Context, o HuntOptions) (*HuntResult, error) {
	o.setDefaults()
	started := time.Now()
	h := newHunt(o, started)
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
	result.Minimal, err = h.minimise(ctx, failed)
	return result, err
}

// chanceOf returns Hunt.Chance for a program that reaches so many points of its code.
func chanceOf(points uint64) int {
	return int(min(max(codePreemptions*allChances/max(points, 1), leastChance), mostChance))
}

// NoEndError says that a program does not end when its threads run one at a time.
type NoEndError struct{ Timeout time.Duration }

func (e *NoEndError) Error() string {
	return fmt.Sprintf("explore: the program comes to no end within %v if its threads run one at a time, each until it waits: one computes, waits for the outside, or looks at a variable again and again, which 'diagnose cc' lets others come between", e.Timeout)
}

// hunt is a running hunt.
type hunt struct {
	options HuntOptions
	started time.Time
	length  uint64
	most    uint64
	chance  int

	until time.Time // the end of all runs

	mu        sync.Mutex
	longest   time.Duration // of a run that ended
	schedules int
	hung      int
	ready     int
	next      uint64
	seen      map[uint64]bool // digests of decisions
	told      time.Time
	runners   []*runner
}

func newHunt(o HuntOptions, started time.Time) *hunt {
	return &hunt{options: o, started: started, until: started.Add(o.Budget + o.Budget/10), seen: map[uint64]bool{}}
}

// fits reports whether there is time for so many runs one after another.
func (h *hunt) fits(runs int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !time.Now().Add(time.Duration(runs) * h.longest).After(h.until)
}

// noteTime adds the duration of a run.
func (h *hunt) noteTime(r *ran) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.hung {
		h.longest = max(h.longest, r.took)
	}
}

// runner returns the n-th of the concurrent runners.
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

// close closes the runners.
func (h *hunt) close() {
	for _, r := range h.runners {
		r.close()
	}
}

// plain makes the run without preemptions.
func (h *hunt) plain(ctx context.Context) (*ran, error) {
	r, err := h.runner(0)
	if err != nil {
		return nil, err
	}
	plain, err := r.runSchedule(ctx, &record.Hunt{Strategy: record.HuntPlan, Most: 1 << 32, Globals: !h.options.NoGlobals})
	if err != nil {
		return nil, err
	}
	switch {
	case plain.hung && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, ctx.Err()
	case plain.hung:
		return nil, &NoEndError{min(h.options.Timeout, h.options.Budget)}
	case plain.hunted == nil:
		return nil, errors.New("explore: nothing is known of the program's threads: it was killed, or is not recorded")
	}
	h.most = max(mostHuntSteps*plain.hunted.Steps, leastHuntSteps)
	h.note(plain)
	return plain, nil
}

// note adds a run to the counts.
func (h *hunt) note(r *ran) {
	h.noteTime(r)
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

// tell calls Progress. The caller must hold the lock.
func (h *hunt) tell(p HuntProgress) {
	if h.options.Progress == nil || time.Since(h.told) < progressEvery {
		return
	}
	h.told, p.Elapsed = time.Now(), time.Since(h.started)
	h.options.Progress(p)
}

// search tries seeds in their order, several concurrently. Of those that fail the lowest
// counts, so the number of jobs does not matter.
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
	// A schedule that fails is to be recorded, too. One is tried in any case.
	for first := true; ctx.Err() == nil && (h.fits(2) || first && h.fits(1)); first = false {
		seed, ok := s.take()
		if !ok {
			return nil
		}
		x, err := r.runSchedule(ctx, h.schedule(seed))
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

// schedule returns the schedule of a seed.
func (h *hunt) schedule(seed uint64) *record.Hunt {
	return &record.Hunt{Strategy: h.options.Strategy, Seed: seed, Depth: h.options.Depth, Length: h.length, Most: h.most,
		Chance: h.chance, Globals: !h.options.NoGlobals}
}

// seeds hands out seeds in their order.
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

// untake takes back a seed whose run was abandoned.
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
