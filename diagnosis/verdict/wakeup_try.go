package verdict

import (
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/replay"
)

// try makes the experiments on a cause, and tells it unless they contradict it. Those with which the run continues come first.
func (k *wakeups) try(m *missingWakeup) {
	if k.woken(m) {
		k.out.Excluded = append(k.out.Excluded, evidence.Fact{Name: m.Variable,
			Text: m.Summary + ": when the waits end without a signal, the threads wait again, as their conditions do not hold"})
		k.vain = append(k.vain, m)
		return
	}
	helped := helps(&m.Cause)
	if helped && m.lost != nil {
		k.prove(m)
	}
	if helped {
		k.out.Causes = slices.Insert(k.out.Causes, k.before+k.helped, m.Cause)
		k.helped++
	} else {
		k.out.Causes = append(k.out.Causes, m.Cause)
	}
}

// helps reports whether an experiment was made with which the run continues.
func helps(c *evidence.Cause) bool {
	return slices.ContainsFunc(c.Experiments, func(e evidence.Experiment) bool { return !e.Control && !e.Expect && e.Agrees() })
}

// conditions tells, where no signal is missing, what the threads tested before they waited.
func (k *wakeups) conditions() {
	if len(k.vain) == 0 || len(k.out.Causes) > k.before || k.exact.record(k.progress.ctx, k.Image, k.progress.say) != nil {
		return
	}
	x := k.exact
	for _, m := range k.vain {
		thread := m.calls[m.last].thread
		if at, _ := provenance.GaveUp(x.trace, x.program, x.trace.Last(thread)); at >= 0 {
			k.tracedCauses.leadTo(provenance.Decided(x.trace, x.program, at, flow.Location{}, x.whole), k.threadText(thread)+" waits for "+m.Variable)
		}
	}
}

// mostEnded bounds how often the waits of one thread are ended in a replay: each takes two stops.
const mostEnded = 1000

// woken has the waits that did not end return when no thread can continue, again and again, as waits for condition variables may without
// a signal: a thread whose signal is missing continues then, and one whose condition does not hold waits again. It reports whether all
// waited again at once.
func (k *wakeups) woken(m *missingWakeup) (contradicted bool) {
	if m.edge.What != evidence.WaitCondition {
		return false
	}
	again := k.experiments.unchanged(k.rec)
	tooOften := false
	e := k.experiments.without(&change{what: fmt.Sprintf("waits for %s end when no thread can continue", m.Variable), breaks: func() []replay.Break {
		x := &ending{of: m, last: map[uint32]endedWait{}, times: map[uint32]int{}, vain: map[uint32]bool{}, tooOften: &tooOften}
		list, err := k.breaks([]string{"pthread_cond_wait"}, x.call)
		if err != nil { // seeCalls has found it
			return nil
		}
		for i := range list {
			list[i].Changes = true
		}
		signals, err := k.breaks(wakeFunctions[evidence.WaitCondition].wake, x.signalled)
		if err != nil {
			return nil
		}
		return append(list, signals...)
	}})
	if tooOften && !e.Agrees() {
		e.Undecided = fmt.Sprintf("the waits ended more than %s", timesText(mostEnded))
	}
	m.Experiments = append(m.Experiments, again, e)
	return again.Agrees() && e.Undecided == "" && e.Runs > 0 && e.Failed == e.Runs
}

// ending ends the waits of one replay.
type ending struct {
	of *missingWakeup
	// last are the threads whose last wait was ended by nothing else, and that have signalled nothing since.
	last  map[uint32]endedWait
	times map[uint32]int
	// vain are those that have waited again at once, since a thread did anything else.
	vain     map[uint32]bool
	tooOften *bool
}

// endedWait is how far the process was when a wait was ended: the thread's last event before the wait, and how many calls had had no result in the log.
type endedWait struct{ ordinal, madeUp uint64 }

// signalled is a call by which a thread wakes others.
func (x *ending) signalled(s *replay.Stopped, _ evidence.Addr) error {
	delete(x.last, s.Moment.Thread)
	return nil
}

// call is a call of pthread_cond_wait.
func (x *ending) call(s *replay.Stopped, object evidence.Addr) error {
	t := s.Moment.Thread
	from, waits := x.of.waits[t]
	if !waits || object != x.of.edge.Object || s.Moment.Ordinal < from {
		return nil
	}
	madeUp, err := s.MadeUp()
	if err != nil {
		return err
	}
	const own = 1 // the event of the wait itself
	if before, ended := x.last[t]; ended && s.Moment.Ordinal <= before.ordinal+own && madeUp == before.madeUp {
		x.vain[t] = true
	} else {
		clear(x.vain)
	}
	if len(x.vain) == len(x.of.waits) {
		return nil
	}
	if x.times[t]++; x.times[t] > mostEnded {
		*x.tooOften = true
		return nil
	}
	ordinal := s.Moment.Ordinal
	delete(x.last, t)
	return s.EndWait(func(ended bool) {
		if now, err := s.MadeUp(); ended && err == nil {
			x.last[t] = endedWait{ordinal, now}
		}
	})
}

// prove holds back the thread that signalled until the other one waits. The run may pass for another reason, as more than the
// signal comes later: that the wait returns at once has to help as well.
func (k *wakeups) prove(m *missingWakeup) {
	wake, wait := m.lost, &m.calls[m.last]
	schedule, err := k.rec.Log.Schedule()
	if len(schedule) == 0 || wake.thread == wait.thread {
		if err != nil {
			k.progress.limit(evidence.Limit{Code: evidence.LimitRecordedOrder, Reason: err.Error()})
		}
		return
	}
	returned := false
	see := func(s *replay.Stopped) error {
		returned = returned || s.Moment.Thread == wait.thread
		return nil
	}
	e := k.experiments.replayed(fmt.Sprintf("%s kept back before that until %s waits", k.threadText(wake.thread), k.threadText(wait.thread)),
		k.rec, replay.FreeRequest{Breaks: []replay.Break{{PC: wait.returnTo, Do: see}}, Schedule: replay.Reorder(schedule, replay.Hold{
			Thread: wake.thread, Ordinal: wake.ordinal, Until: replay.EventOf{Thread: wait.thread, Ordinal: replay.AsFarAsItCan}})}, false)
	if e.Agrees() && !returned {
		e.Undecided = "the wait was not seen to end"
	}
	claim := evidence.Event{Thing: m.Variable, At: evidence.Moment{Thread: wake.thread, Ordinal: wake.ordinal, PC: wake.returnTo, Count: 1}}
	e.Change = &claim
	m.Experiments = append(m.Experiments, e)
	k.experiments.proveBy(&m.Cause, claim)
}
