package verdict

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/record"
	"diagnose/replay"
)

const (
	// mostTried is how many candidates are put to the test, mostReported how many
	// are told of when none of them passes it.
	mostTried    = 8
	mostReported = 3
)

// concurrency compares the failing runs with the passing ones, and tries by
// experiment which order of accesses the failure depends on.
func (w *work) concurrency() error {
	if w.settled() {
		return nil
	}
	failing, passing, err := w.traceSuspects()
	if err != nil {
		return err
	}
	found, err := w.findPatterns(failing, passing)
	if err != nil {
		return err
	}
	for _, l := range found.Limits {
		w.limit(l)
	}
	r := &race{work: w, failing: failing, passing: passing, found: found}
	if err := r.try(); err != nil {
		return err
	}
	r.exclude()
	return nil
}

// settled reports whether a memory error is proved that no order of threads
// explains any further.
func (w *work) settled() bool {
	return slices.ContainsFunc(w.out.Causes, func(c evidence.Cause) bool {
		switch c.Kind {
		case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow, evidence.CauseStackSmashing, evidence.CauseBadInput:
			return c.Proof == evidence.Proved
		}
		return false
	})
}

func (w *work) findPatterns(failing, passing []traced) (*patterns.Result, error) {
	var f, p []*evidence.AccessLog
	var threads []uint32
	for _, t := range failing {
		f = append(f, t.log)
		threads = append(threads, t.rec.Manifest.Outcome.Thread)
	}
	for _, t := range passing {
		p = append(p, t.log)
	}
	runs, err := delta.Align(f, p)
	if err != nil {
		return nil, err
	}
	return patterns.Find(delta.Compare(runs), patterns.Options{Threads: threads}), nil
}

// race is the search among the candidates.
type race struct {
	*work
	failing, passing []traced
	found            *patterns.Result
	excluded         []evidence.Fact
	again            *evidence.Experiment // the recorded run, unchanged
}

// tested is a candidate and what the experiments say.
type tested struct {
	candidate   *patterns.Candidate
	experiments []evidence.Experiment
	// cured: the failure went with the order; refuted: it stayed without it.
	cured, refuted bool
	// onlyBehind: that the other context is first altogether does not help.
	onlyBehind bool
}

// try goes through the candidates until an experiment proves one.
func (r *race) try() error {
	var open []*tested
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		if i == mostTried || !c.Suspicious() {
			break
		}
		t, err := r.test(c)
		if err != nil {
			return err
		}
		switch {
		case t.cured:
			return r.report(r.better(t))
		case t.refuted:
			r.excluded = append(r.excluded, evidence.Fact{Name: namesText(c.Variables),
				Text: fmt.Sprintf("%s at %s: the failure stays without that order", c.Pattern, r.placesText(c))})
		default:
			open = append(open, t)
		}
	}
	for i, t := range open {
		if i == mostReported || len(r.passing) == 0 && i > 0 {
			break
		}
		if err := r.report(t); err != nil {
			return err
		}
	}
	return nil
}

// better is the order violation, where a pattern of three was not about what
// interrupts but about who is first.
func (r *race) better(t *tested) *tested {
	if !t.onlyBehind {
		return t
	}
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		if c.Reversed && c.Variables[0] == t.candidate.Variables[0] && len(c.Accesses) == 2 && c.Suspicious() {
			other, err := r.test(c)
			if err == nil && other.cured {
				return other
			}
		}
	}
	return t
}

// test makes the experiments on a candidate. The first look is one replay each.
func (r *race) test(c *patterns.Candidate) (*tested, error) {
	t := &tested{candidate: c}
	var passing *evidence.AccessLog
	if c.PassingRun >= 0 && c.PassingRun < len(r.passing) {
		passing = r.passing[c.PassingRun].log
	}
	orders, err := plan(c, r.failing[c.Run].log, passing, r.signals(r.failing[c.Run].rec))
	if err != nil {
		t.experiments = append(t.experiments, evidence.Experiment{What: "another order", Undecided: err.Error()})
		return t, r.ctx.Err()
	}
	if r.again == nil {
		e := r.experiment("the recorded run again", r.failing[0].rec, replay.Options{Free: true}, true)
		r.again = &e
	}
	t.experiments = append(t.experiments, *r.again)
	stayed := 0
	for _, o := range orders {
		e, made := r.make(c, o, 1)
		if made && e.Agrees() {
			e, _ = r.make(c, o, r.Replays)
		}
		r.judge(t, o, e, &stayed)
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
	}
	t.cured = t.cured && r.again.Agrees()
	t.refuted = !t.cured && stayed > 0
	return t, nil
}

// judge adds an experiment to what is known of a candidate.
func (r *race) judge(t *tested, o order, e evidence.Experiment, stayed *int) {
	switch {
	case o.expect:
		if !e.Agrees() && e.Undecided == "" {
			e.Undecided = "the order alone may not be enough in that run"
		}
	case e.Agrees():
		t.cured = true
	case e.Undecided == "" && o.first && t.cured:
		t.onlyBehind = true
		e.Undecided = "the same accesses may fail in that order as well"
	case e.Undecided == "" && t.cured:
		e.Undecided = "the other way to change the order helps"
	case e.Undecided == "":
		*stayed++
	}
	t.experiments = append(t.experiments, e)
}

// make replays in an order, so many times.
func (r *race) make(c *patterns.Candidate, o order, times int) (evidence.Experiment, bool) {
	t := &r.failing[c.Run]
	if !o.failing {
		t = &r.passing[c.PassingRun]
	}
	opts := replay.Options{Free: true}
	if o.delay != nil {
		opts.Edits = []replay.Edit{*o.delay}
	}
	if len(o.holds) > 0 {
		schedule, err := t.rec.Log.Schedule()
		if len(schedule) == 0 {
			return evidence.Experiment{What: o.what, Expect: o.expect, Undecided: fmt.Sprintf("the recorded order: %v", err)}, false
		}
		for _, h := range o.holds {
			schedule = replay.Reorder(schedule, h)
		}
		opts.Schedule = schedule
	}
	w := *r.work
	w.Replays = times
	return w.experiment(o.what, t.rec, opts, o.expect), true
}

// signals looks for the arrival of a handler's signal in a recording.
func (r *race) signals(rec *record.Recording) signals {
	return func(a *evidence.Access) (event, last uint64, ok bool) {
		for e, err := range rec.Log.Events(a.Thread) {
			if err != nil {
				break
			}
			last = e.Ordinal
			if e.Ordinal <= a.Ordinal && e.Kind == record.KindSignal && e.Object == uint64(a.Handler) {
				event, ok = e.Ordinal, true
			}
		}
		return event, last, ok
	}
}

func signalName(n uint8) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// exclude says what was looked at and is not the cause.
func (r *race) exclude() {
	r.out.Excluded = append(r.out.Excluded, r.excluded...)
	n := r.found
	if n.Common > 0 {
		r.out.Excluded = append(r.out.Excluded, evidence.Fact{Name: "common orders",
			Text: fmt.Sprintf("%d of %d orders of accesses are in passing runs as well", n.Common, n.Seen)})
	}
	if n.Ordered > 0 {
		r.out.Excluded = append(r.out.Excluded, evidence.Fact{Name: "enforced orders",
			Text: fmt.Sprintf("%d orders of accesses could not have been another: the program enforces them", n.Ordered)})
	}
}
