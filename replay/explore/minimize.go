package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"diagnose/replay/record"
)

// Minimal is a failing schedule with as few decisions as were found. Each of them is needed.
// They are where the bug is.
type Minimal struct {
	// Decisions are those of the failing schedule. Preemptions counts those that preempt a
	// thread that could have continued.
	Decisions   []record.Decision `json:"decisions"`
	Preemptions int               `json:"preemptions"`
	// Before is the number of decisions at the start. Runs is how many schedules were tried.
	Before int `json:"before"`
	Runs   int `json:"runs"`
	// Passing is the nearest schedule that passes: a part of the failing one.
	Passing []record.Decision `json:"passing"`
	passes  bool
	// LeftOut says which steps were left out, and why; empty: none.
	LeftOut string `json:"left_out,omitempty"`
	// FailingDir and PassingDir are the recordings of both; empty: there is none.
	FailingDir string `json:"failing_recording,omitempty"`
	PassingDir string `json:"passing_recording,omitempty"`
	// Failure is how the recorded run failed.
	Failure Failure `json:"failure"`
}

const (
	// mostMinimising is the maximum number of runs for a minimisation, longestMinimising its
	// maximum time.
	mostMinimising    = 3000
	longestMinimising = 2 * time.Minute
	// recordTries is how many times a run is recorded until it ends as it did before. A run
	// that depends on the outside may differ.
	recordTries = 5
	// mostAlone is how many decisions are tried alone, mostPlaces the largest number of
	// possible decisions for which all of them are tried.
	mostAlone, mostPlaces = 16, 400
	// withRecordings are a run and the recordings of a failing and a passing one.
	withRecordings = 3
	// passingSeeds is how many seeds are tried if no schedule with one decision less passes.
	passingSeeds = 500
)

// Minimize finds the fewest decisions with which the run of a hunted recording still fails.
func Minimize(ctx context.Context, rec *record.Recording, o HuntOptions) (*HuntResult, error) {
	m := rec.Manifest.Hunt
	if m == nil {
		return nil, &NoScheduleError{rec.Dir, "its threads ran as the kernel had them; 'diagnose hunt' makes recordings that have a schedule"}
	}
	if m.Missing > 0 {
		return nil, fmt.Errorf("explore: %d decisions of its schedule found no room in the recording", m.Missing)
	}
	o.Strategy, o.Depth, o.Length, o.NoGlobals = m.Strategy, m.Depth, m.Length, !m.Hunt.Globals
	o.setDefaults()
	started := time.Now()
	h := newHunt(o, started)
	h.length, h.chance, h.ready = m.Length, m.Chance, m.Ready
	defer h.close()
	r, err := h.runner(0)
	if err != nil {
		return nil, err
	}
	h.most = max(mostHuntSteps*m.Steps, leastHuntSteps)
	failed, err := r.runSchedule(ctx, h.plan(m.Decisions))
	if err != nil {
		return nil, err
	}
	if failed.failure == nil {
		return nil, errors.New("explore: the program does not fail any more with the recording's schedule: it depends on something outside of it, or was rebuilt")
	}
	failed.hunted = &m.Hunted
	result := &HuntResult{Strategy: m.Strategy, Depth: m.Depth, Length: m.Length, Seed: m.Seed, Found: true, Failure: failed.failure, Schedules: 1,
		Steps: m.Steps, Ready: m.Ready, Globals: m.Hunted.Globals}
	result.Minimal, err = h.minimise(ctx, failed)
	result.Time = time.Since(started).Seconds()
	return result, err
}

// plan returns the schedule of a list of decisions.
func (h *hunt) plan(list []record.Decision) *record.Hunt {
	return &record.Hunt{Strategy: record.HuntPlan, Length: h.length, Most: h.most, Plan: list, Globals: !h.options.NoGlobals}
}

// minimiser reduces a failing schedule.
type minimiser struct {
	*hunt
	ctx     context.Context
	runner  *runner
	failure Failure
	runs    int
	until   time.Time
	// full is set once a limit is reached.
	full bool
}

// fails reports whether the decisions lead to the failure. It returns false if a limit is
// reached.
func (m *minimiser) fails(list []record.Decision) (bool, error) {
	if m.full = m.full || m.runs >= mostMinimising || time.Now().After(m.until) || !m.fits(2); m.full {
		return false, nil
	}
	m.runs++
	m.mu.Lock()
	m.tell(HuntProgress{Schedules: m.schedules + m.runs, Hung: m.hung, Minimising: true, Left: len(list)})
	m.mu.Unlock()
	x, err := m.runner.runSchedule(m.ctx, m.plan(list))
	if err != nil {
		return false, err
	}
	m.noteTime(x)
	return x.failure != nil && x.failure.same(m.failure), m.ctx.Err()
}

// minimise reduces a run that failed. At the end it records the smallest failing schedule and
// the nearest that passes.
func (h *hunt) minimise(ctx context.Context, failed *ran) (*Minimal, error) {
	r, err := h.runner(0)
	if err != nil {
		return nil, err
	}
	m := &minimiser{hunt: h, ctx: ctx, runner: r, failure: *failed.failure, until: time.Now().Add(longestMinimising)}
	list := failed.hunted.Decisions
	out := &Minimal{Before: len(list), Failure: *failed.failure}
	same := false
	if failed.hunted.Missing == 0 {
		if same, err = m.fails(list); err != nil {
			return nil, err
		}
	}
	if !same {
		out.LeftOut = "the schedule's decisions alone do not make the program fail again, so none were taken away"
		if m.full {
			out.LeftOut = "the time was over, so no decisions were taken away"
		}
		out.Decisions = list
		return out, h.keep(ctx, m, out, h.schedule(failed.seed))
	}
	if list, err = reduce(list, m.fails); err != nil {
		return nil, err
	}
	if list, err = m.alone(list); err != nil {
		return nil, err
	}
	out.Decisions = list
	if out.Passing, out.passes, err = m.passing(list); err != nil {
		return nil, err
	}
	if m.full {
		out.LeftOut = fmt.Sprintf("after %d runs decisions were left that may not be needed", m.runs)
	}
	return out, h.keep(ctx, m, out, h.plan(list))
}

// reduce removes elements that are not needed: delta debugging (Zeller and Hildebrandt 2002,
// ddmin). Each element of the result is needed.
func reduce[T any](list []T, fails func([]T) (bool, error)) ([]T, error) {
	if len(list) == 0 {
		return list, nil
	}
	if without, err := fails(nil); err != nil || without {
		return nil, err
	}
	for parts := 2; len(list) >= 2; {
		smaller, err := reduceOnce(list, parts, fails)
		switch {
		case err != nil:
			return nil, err
		case smaller != nil:
			parts = max(parts-1, 2)
			if len(smaller)*parts <= len(list) { // one part alone
				parts = 2
			}
			list = smaller
		case parts >= len(list):
			return list, nil
		default:
			parts = min(2*parts, len(list))
		}
	}
	return list, nil
}

// reduceOnce tries the parts of a list, and the list without each; nil: none of them fails.
func reduceOnce[T any](list []T, parts int, fails func([]T) (bool, error)) ([]T, error) {
	cut := func(i int) int { return i * len(list) / parts }
	for _, alone := range []bool{true, false} {
		if alone && parts > 2 || !alone && parts == 2 {
			continue // the other half, or a part that was a complement's
		}
		for i := range parts {
			var try []T
			if alone {
				try = list[cut(i):cut(i+1)]
			} else {
				try = slices.Concat(list[:cut(i)], list[cut(i+1):])
			}
			if fails, err := fails(try); err != nil || fails {
				return slices.Clone(try), err
			}
		}
	}
	return nil, nil
}

// alone looks for one decision that has the effect of several: at the place of one of them, for
// any thread, or, in a short program, anywhere. That each of several is needed does not mean
// that there is no smaller set, since some compensate for others.
func (m *minimiser) alone(list []record.Decision) ([]record.Decision, error) {
	if len(list) < 2 {
		return list, nil
	}
	var threads uint32
	for _, d := range list {
		threads = max(threads, d.Thread, d.To)
	}
	places := slices.Clone(list[:min(len(list), mostAlone)])
	if steps := m.length; steps*uint64(threads*threads) <= mostPlaces {
		for step := range steps {
			for thread := range threads {
				places = append(places, record.Decision{Thread: thread + 1, Step: step + 1})
			}
		}
	}
	for _, d := range places {
		for to := range threads {
			if d.To = to + 1; d.To == d.Thread {
				continue
			}
			if fails, err := m.fails([]record.Decision{d}); err != nil || fails {
				return []record.Decision{d}, err
			}
		}
	}
	return list, nil
}

// passing returns the schedule nearest to the failing one that passes: without the last
// decision, or another that the failure needs. If the failing schedule has none, it is a
// passing schedule with few decisions.
func (m *minimiser) passing(list []record.Decision) (nearest []record.Decision, ok bool, err error) {
	for i := len(list) - 1; i >= 0 && m.fits(withRecordings); i-- {
		try := slices.Concat(list[:i], list[i+1:])
		if passes, err := m.passes(m.plan(try)); err != nil || passes != nil {
			return try, passes != nil, err
		}
	}
	if m.ready < 2 { // there is only one schedule
		return nil, false, nil
	}
	for seed := m.options.First; seed < m.options.First+passingSeeds && time.Now().Before(m.until) && m.fits(withRecordings); seed++ {
		x, err := m.passes(m.schedule(seed))
		if err != nil {
			return nil, false, err
		}
		if x == nil || x.hunted == nil || x.hunted.Missing > 0 {
			continue
		}
		nearest, err = reduce(x.hunted.Decisions, func(list []record.Decision) (bool, error) {
			x, err := m.passes(m.plan(list))
			return x != nil, err
		})
		if x, again := m.passes(m.plan(nearest)); err != nil || again != nil || x != nil {
			return nearest, x != nil, errors.Join(err, again)
		}
	}
	return nil, false, nil
}

// passes runs a schedule; nil: it does not pass, or there is no time to run it.
func (m *minimiser) passes(h *record.Hunt) (*ran, error) {
	if !time.Now().Before(m.until) || !m.fits(1) {
		m.full = true
		return nil, nil
	}
	m.runs++
	x, err := m.runner.runSchedule(m.ctx, h)
	if err != nil || m.ctx.Err() != nil {
		return nil, errors.Join(err, m.ctx.Err())
	}
	m.noteTime(x)
	if x.failure != nil || x.hung {
		return nil, nil
	}
	return x, nil
}

// keep records the failing run, and the passing run if there is one.
func (h *hunt) keep(ctx context.Context, m *minimiser, out *Minimal, failing *record.Hunt) error {
	out.Runs = m.runs
	x, err := h.kept(ctx, m.runner, failing, func(x *ran) bool { return x.failure != nil && x.failure.same(m.failure) })
	if err != nil {
		return err
	}
	if x == nil {
		return errors.New("explore: the failing schedule did not fail when it was recorded: the program depends on something outside of it, or no time was left to try again")
	}
	out.FailingDir, out.Failure = x.dir, *x.failure
	if x.hunted != nil { // from the engine, which knows which threads could have continued
		out.Decisions = x.hunted.Decisions
	}
	for _, d := range out.Decisions {
		if d.Preempts {
			out.Preemptions++
		}
	}
	if !out.passes || !h.fits(1) {
		return nil
	}
	x, err = h.kept(ctx, m.runner, h.plan(out.Passing), func(x *ran) bool { return x.failure == nil && !x.hung })
	if err == nil && x != nil {
		out.PassingDir = x.dir
	}
	return err
}

// kept records a schedule until it ends as wanted; nil: it never did.
func (h *hunt) kept(ctx context.Context, r *runner, schedule *record.Hunt, wanted func(*ran) bool) (*ran, error) {
	for i := range recordTries {
		if i > 0 && !h.fits(1) {
			break
		}
		x, err := r.record(ctx, schedule)
		if err != nil || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		h.noteTime(x)
		if wanted(x) {
			return x, nil
		}
		if x.dir != "" {
			os.RemoveAll(x.dir)
		}
	}
	return nil, nil
}
