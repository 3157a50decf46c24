package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/replay"
)

// test makes the experiments on a candidate. The first look is one replay each.
func (r *race) test(c *patterns.Candidate) (*tested, error) {
	if interrupts(c, r.failing[c.Run].log) {
		return r.testInterruption(c)
	}
	if r.missed(c) {
		return r.testMissed(c)
	}
	if r.early(c) {
		return r.testEarly(c)
	}
	t := &tested{candidate: c}
	if c.Stored {
		t.rivals = slices.Clone(c.Variables) // the store of the value explains the failure as well
	}
	if t.needless = r.passesBefore(c); t.needless {
		return t, nil
	}
	var passing *run
	if c.PassingRun >= 0 && c.PassingRun < len(r.passing) {
		passing = r.run(&r.passing[c.PassingRun])
	}
	orders, err := plan(c, r.run(&r.failing[c.Run]), passing)
	if err != nil {
		t.experiments = append(t.experiments, evidence.Experiment{What: "another order", Undecided: err.Error()})
		return t, r.halted()
	}
	if !r.asLogged(c) {
		r.progress.limit(evidence.Limit{Code: evidence.LimitContradictedOrder, Pattern: c.Pattern, Names: c.Variables, Place: r.placesText(c)})
		t.unlogged = true
		return t, r.halted()
	}
	t.experiments = append(t.experiments, *r.recordedAgain())
	var helped []order
	for _, o := range orders {
		if len(c.Accesses) > 2 && (o.control || o.expect) && !t.cured {
			continue // both ways to change the order left the failure
		}
		e := r.make(t, o, 1)
		if t.needless {
			return t, nil
		}
		if e.Agrees() {
			e = r.make(t, o, r.Replays)
		}
		cures := t.cures
		if r.judge(t, o, e); t.cures > cures {
			helped = append(helped, o)
		}
		if err := r.progress.ctx.Err(); err != nil && !r.progress.stopsBefore("experiments") {
			return nil, err
		}
	}
	t.cured = (t.cured || t.forced && t.passes) && r.recordedAgain().Agrees()
	t.refuted = !t.cured && !t.recurred && (t.stayed || t.doubtful)
	if t.cured && c.Pattern == evidence.PatternPair {
		t.along = movedAlong(r.failing[c.Run].log, c.Accesses)
	}
	if t.cured && !r.contradicted(t) {
		r.check(t, helped)
	}
	if t.cured && !r.contradicted(t) {
		for i := range t.experiments {
			if e := &t.experiments[i]; !e.Expect && !e.Agrees() && e.Undecided == "" {
				e.Undecided = otherWay
			}
		}
	}
	return t, nil
}

// check makes smaller changes than those that helped. If the accesses come in another order because a thread is kept back from their section on, and no
// earlier, the failure has to be gone, too; if they come as recorded because it is kept back as long, but after them, the failure has to
// come. Else what the thread does before or after may be the cause, and the order of the accesses a bystander's. Where the first leaves the failure, and
// it is not seen whether the order was another, that may be so as well, and nothing is proved.
func (r *race) check(t *tested, helped []order) {
	for _, o := range helped {
		for _, x := range o.checks {
			if t.loose {
				return
			}
			if x.kept && r.nothingAfter(t.candidate, x) {
				continue // the recorded run was that
			}
			t.addCheck(x, r.make(t, x, 1))
		}
	}
}

// nothingAfter reports whether the thread that an order keeps back has no event in the failing run from there on.
func (r *race) nothingAfter(c *patterns.Candidate, o order) bool {
	schedule, _ := r.failing[c.Run].rec.Log.Schedule()
	return len(schedule) > 0 && schedule.Events()[o.holds[0].Thread] < o.holds[0].Ordinal
}

// addCheck adds a smaller change.
func (t *tested) addCheck(x order, e evidence.Experiment) {
	decided := e.Undecided == "" && e.Runs > 0
	t.loose = decided && (e.Failed == 0) == x.kept
	t.unconfirmed = t.unconfirmed || !decided && !x.kept && e.Failed > 0
	e.Expect, e.Control = x.kept, true
	t.experiments = append(t.experiments, e)
}

// recordedAgain is the recorded run as it was.
func (r *race) recordedAgain() *evidence.Experiment {
	e := r.experiments.unchanged(r.failing[0].rec)
	return &e
}

// halted is why the search cannot continue, other than by its bound of time.
func (r *race) halted() error {
	if err := r.progress.ctx.Err(); err != nil && !r.progress.stopsBefore("experiments") {
		return err
	}
	return nil
}

// judge adds an experiment to what is known of a candidate.
func (r *race) judge(t *tested, o order, e evidence.Experiment) {
	if !e.Expect && !t.later && e.Agrees() && e.End != nil && e.End.Kind == evidence.RunEndSignal {
		e.Undecided = "another failure came instead"
	}
	agrees, decided := e.Agrees(), e.Undecided == ""
	switch {
	case o.control:
		t.passes, t.doubtful = agrees, t.doubtful || decided && !agrees
	case o.expect:
		t.forced = agrees
		if !agrees && decided {
			t.doubtful = true
			e.Undecided = "the order alone may not be enough in that run"
		}
	case agrees && t.later:
		t.recurred = true
	case agrees:
		t.cured = true
		t.cures++
	case t.cured && (decided || e.Failed > 0):
		t.onlyBehind = t.onlyBehind || o.first
		if decided {
			e.Undecided = otherWay
		}
	case decided:
		t.stayed = true
	}
	t.experiments = append(t.experiments, e)
}

// make replays in an order, so many times, and notes whether a replay shows that a candidate is needless, or may be.
func (r *race) make(tested *tested, o order, times int) evidence.Experiment {
	c := tested.candidate
	t := &r.failing[c.Run]
	if !o.failing {
		t = &r.passing[c.PassingRun]
	}
	opts := replay.FreeRequest{}
	if len(o.holds) > 0 {
		schedule, err := t.rec.Log.Schedule()
		if len(schedule) == 0 {
			return evidence.Experiment{What: o.what, Expect: o.expect, Undecided: fmt.Sprintf("the recorded order: %v", err)}
		}
		for _, h := range o.holds {
			schedule = replay.Reorder(schedule, h)
		}
		opts.Schedule = schedule
	}
	x := r.experiments.times(times)
	var states []orderState
	guard, turned, later := r.guardOf(c), true, false
	e := x.repeat(o.what, o.expect, func() trial {
		once := opts
		var look *orderLook
		if o.failing {
			look = r.look(c)
			once.Breaks = look.breaks()
		}
		out := x.once(t.rec, once, o.expect)
		states = append(states, look.state(out.unbroken))
		turned = turned && guard.turned(look, out.unbroken)
		if out.later && o.failing && !o.expect && !o.control && !o.kept {
			later, out.failed, out.check = true, false, nil
			out.outcome = "it came past the place where the recorded run failed, and failed there later: " + out.outcome
		}
		if passed, same := look.passedBefore(out.unbroken); passed && !out.failed {
			tested.needless, tested.unconfirmed = tested.needless || same, tested.unconfirmed || !same
		}
		return out
	})
	e.Control, tested.later = o.control, later && e.Agrees()
	switch {
	case o.kept:
		notKept(&e, states)
	case o.failing && !o.expect:
		notRemoved(&e, states)
	}
	if turned && e.Check != nil && e.Check.Again == 0 {
		e.Check.Guard = namesText(c.Variables)
	}
	return e
}

// notRemoved says of an experiment why it decides nothing about an order, by what became of that in its
// replays. Where the failure stayed the order has to have been another: what is ruled out has no part
// in the failure.
func notRemoved(e *evidence.Experiment, states []orderState) {
	if e.Undecided != "" || e.Runs == 0 {
		return
	}
	for _, s := range states {
		switch {
		case e.Failed == 0 && s == orderKept:
			e.Undecided = evidence.Say(keptAllTheSame)
		case e.Failed > 0 && s != orderRemoved:
			e.Undecided = evidence.Say(notSeenToBeOther)
		}
	}
}

// notKept says of an experiment that was to leave an order as it was that it decides nothing, where a replay was not seen to have that order.
func notKept(e *evidence.Experiment, states []orderState) {
	if e.Undecided == "" && slices.ContainsFunc(states, func(s orderState) bool { return s != orderKept }) {
		e.Undecided = evidence.Say(notSeenAsRecorded)
	}
}
