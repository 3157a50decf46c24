package verdict

import (
	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/replay"
)

// testMissed is test for an order that is the failing run's because a signal came too late
// there, or never: in passing runs its handler had written before.
func (r *race) testMissed(c *patterns.Candidate) (*tested, error) {
	t := &tested{candidate: c}
	in, err := r.newInterruption(&r.passing[c.PassingRun], c.Passing)
	var x *interruption
	if err == nil {
		x, err = r.newMissed(&r.failing[c.Run], c.Accesses[0], in)
	}
	if err != nil {
		t.experiments = append(t.experiments, evidence.Experiment{What: "the signal at another place", Undecided: err.Error()})
		return t, r.halted()
	}
	t.experiments = append(t.experiments, *r.recordedAgain())
	_, list, early := x.earliest()
	t.experiments = append(t.experiments, list...)
	r.force(t, in)
	t.stayed = early == effectFailed
	t.cured = (early == effectCured || t.forced && t.passes) && !t.stayed && r.recordedAgain().Agrees()
	t.refuted = !t.cured && (t.stayed || t.doubtful)
	return t, r.halted()
}

// force makes a passing run take the failing order: without the signal the interrupted code
// makes its access first. The run as it was has to pass again.
func (r *race) force(t *tested, in *interruption) {
	control := r.experiments.replayed(unchanged.what, in.run.rec, replay.FreeRequest{}, false)
	p := in.withheld()
	p.what, p.expect = "the passing run, with "+p.what, true
	forced, _, _ := in.sure(p)
	t.experiments = append(t.experiments, control, forced)
	t.forced, t.passes = forced.Agrees(), control.Agrees()
	t.doubtful = control.Undecided == "" && control.Failed > 0 // it fails in the good order as well
}

// missed reports whether a pattern is of a handler's write that the failing run ended before.
func (r *race) missed(c *patterns.Candidate) bool { return c.Never && r.inPassing(c) }

// inPassing reports whether a passing run has the accesses of a pattern of two, with the
// handler's first.
func (r *race) inPassing(c *patterns.Candidate) bool {
	if c.PassingRun < 0 || c.PassingRun >= len(r.passing) || len(c.Passing) != 2 {
		return false
	}
	log := r.passing[c.PassingRun].log
	first, last := &log.Accesses[c.Passing[0]], &log.Accesses[c.Passing[1]]
	return first.Thread == last.Thread && first.Handler != 0 && first.Handler != last.Handler
}

// testEarly is test for an order in which a handler ran before what the interrupted code
// wrote first in passing runs, and the failing run ended before that.
func (r *race) testEarly(c *patterns.Candidate) (*tested, error) {
	t := &tested{candidate: c}
	x, err := r.newInterruption(&r.failing[c.Run], c.Accesses)
	if err != nil {
		t.experiments = append(t.experiments, evidence.Experiment{What: "the signal at another place", Undecided: err.Error()})
		return t, r.halted()
	}
	t.experiments = append(t.experiments, *r.recordedAgain())
	log := r.passing[c.PassingRun].log
	write := &log.Accesses[c.Passing[0]]
	pc, ok := x.next(write.PC)
	if !ok {
		return t, r.halted()
	}
	p := x.delayed(returning{pc: pc, hits: x.began + 1, what: "right after " + siteText(&log.Contexts[write.Context].Site) + " writes it"})
	p.ordered = func(m *moved) string {
		if m.raised >= 0 && m.find(write.PC, x.began, m.raised) < 0 {
			return noAccess
		}
		return x.orderedLater(m)
	}
	e, _, what := x.sure(p)
	t.experiments = append(t.experiments, e)
	t.cured, t.stayed = what == effectCured && r.recordedAgain().Agrees(), what == effectFailed
	t.refuted = !t.cured && t.stayed
	return t, r.halted()
}

// early reports whether a pattern is of a handler that read what the failing run ended before
// writing.
func (r *race) early(c *patterns.Candidate) bool {
	if !c.Never || c.PassingRun < 0 || c.PassingRun >= len(r.passing) || len(c.Passing) != 2 {
		return false
	}
	log := r.passing[c.PassingRun].log
	first, last := &log.Accesses[c.Passing[0]], &log.Accesses[c.Passing[1]]
	return r.failing[c.Run].log.Accesses[c.Accesses[0]].Handler != 0 && first.Thread == last.Thread && first.Handler != last.Handler &&
		last.Handler != 0
}
