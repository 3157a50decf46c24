package verdict

import (
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/internal/wording"
)

// reasons are what decided that the program gave up by itself: nil if it did not, or if there is no trace of that.
func (x *exact) reasons() *provenance.Reasons {
	if x.forget(); x.decided != nil || x.trace == nil || x.failure == nil || !gaveUp[x.failure.Kind] {
		return x.decided
	}
	if at, status := x.gaveUpAt(); at >= 0 {
		x.decided = provenance.Decided(x.trace, x.program, at, status, x.whole)
	}
	return x.decided
}

// forget drops what was asked of another trace than the one that is there.
func (x *exact) forget() {
	if x.of != x.trace {
		x.of, x.decided, x.reaching = x.trace, nil, nil
	}
}

// gaveUpAt is provenance.GaveUp of the trace, with the exit status if that is the failure.
func (x *exact) gaveUpAt() (at int, status flow.Location) {
	at, status = provenance.GaveUp(x.trace, x.program, x.last())
	if x.failure.Kind != evidence.ExitStatus {
		status = flow.Location{}
	}
	return at, status
}

// reached is the memory that had a part in the failing check: in the call by which the program gave up, or in the instruction that failed;
// nil: there is no trace of that.
func (x *exact) reached() *provenance.Reached {
	if x.forget(); x.reaching != nil || x.trace == nil || x.failure == nil || !x.failed() {
		return x.reaching
	}
	at, status := x.last(), flow.Location{}
	if gaveUp[x.failure.Kind] {
		at, status = x.gaveUpAt()
	}
	if at >= 0 {
		x.reaching = provenance.Reaching(x.trace, x.program, at, status, x.whole)
	}
	return x.reaching
}

// decidedBefore is as decidedBroken, where a trace of the end began after what decided: it traces again, from the last call of one after
// the other of the functions whose results a chain leads through. The innermost, which was called last, is the first.
func (w *work) decidedBefore(c *chain) {
	if !endedItself(w.Case) || w.exact.whole || c.victim.damaged() || rustReport(w.Case) != nil { // what reports a panic is too long itself
		return
	}
	a, err := w.moments.failingArrivals()
	if err != nil {
		return
	}
	a.events = frameEvents
	for i := range slices.Backward(c.links) {
		r := c.links[i].returned
		if r == nil || len(r.returns) == 0 {
			continue
		}
		if _, a.pc = functionCode(w.Process, r.returns[0]); a.pc == 0 {
			continue
		}
		m, err := w.moments.last(a)
		if err != nil || m.Count == 0 {
			continue
		}
		made, err := w.exact.again(w.progress.ctx, w.Image, w.progress.say, m)
		if err != nil {
			w.progress.failedPart(err)
		}
		if !made {
			return
		}
		if w.tracedCauses.decidedBroken() {
			return
		}
	}
}

// decidedEarlier looks farther back for what decided that the program gave up, where nothing is told yet: what it computed before its last
// events, such as a message.
func (t *tracedCauses) decidedEarlier() error {
	if !endedItself(t.in.Case) || !t.nothingClosed() {
		return nil
	}
	made, err := t.exact.earlier(t.progress.ctx, t.in.Image, t.progress.say)
	if made {
		t.decidedBroken()
	}
	return err
}

// decidedBroken names the accesses that broke a rule and decided that the program gave up. It reports false where there are none.
func (t *tracedCauses) decidedBroken() bool {
	if !endedItself(t.in.Case) {
		return false
	}
	if err := t.exact.record(t.progress.ctx, t.in.Image, t.progress.say); err != nil {
		return false
	}
	r := t.exact.reasons()
	if r == nil {
		return false
	}
	found := false
	for _, way := range r.Broken {
		if cause := t.exact.cause(&victim{kind: evidence.CauseBadValue, name: "memory that decided the end"}, way); cause != nil && !t.conclusion.known(cause) {
			cause.Object = t.exact.objectOf(way)
			t.withoutFree(cause, way)
			t.out.Causes = append(t.out.Causes, *cause)
			found = true
		}
	}
	return found
}

// leadOfConditions tells the branches that decided that the program gave up, where nothing else is told.
func (t *tracedCauses) leadOfConditions() {
	if r := t.exact.decided; r != nil && len(t.out.Causes)+len(t.conclusion.asides) == 0 {
		t.leadTo(r, "the program gave up")
	}
}

// nothingClosed reports whether no more than leads are told.
func (t *tracedCauses) nothingClosed() bool {
	closed := func(c evidence.Cause) bool { return c.Open == "" }
	return len(t.conclusion.asides) == 0 && !slices.ContainsFunc(t.out.Causes, closed)
}

// leadOfChanged tells first of a number that changed and by which the program gave up, where no cause is told.
func (t *tracedCauses) leadOfChanged() {
	r := t.exact.reasons()
	if r == nil || !t.nothingClosed() {
		return
	}
	for i := range r.Changed {
		x := &r.Changed[i]
		s := t.exact.site(x.PC)
		if s == nil {
			continue
		}
		text := fmt.Sprintf("%s kept %s of the number %d: %d", siteText(s), wording.Count(x.Bytes, "byte"), x.Number, x.Became)
		if x.Extended {
			text = fmt.Sprintf("%s took the number %d, which %s had, as %d", siteText(s), x.Number, wording.Count(x.Bytes, "byte"), x.Became)
		}
		often := text
		if x.Executions > 1 {
			often += fmt.Sprintf(" (in %d of %d executions that were looked at, the number changed)", x.Times, x.Executions)
		}
		t.out.Causes = slices.Insert(t.out.Causes, 0, evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisStore, Site: s, Proof: evidence.Replayed,
			Story: []evidence.CauseStep{t.exact.step(often, s)}, Open: evidence.OpenChanged, Summary: text + "; the program gave up by a value that was made of it"})
		return
	}
}

// comparedValues adds to leads that end at a condition which values it compared, and where they came from, as far as a trace has that.
func (t *tracedCauses) comparedValues() {
	for c := range t.out.Told() {
		if c.Open == "" || c.Site == nil {
			continue
		}
		led := t.exact.conditionBefore(c.Site)
		if led == nil {
			continue
		}
		for _, from := range led.Origins(t.exact.trace, t.exact.program) {
			v := evidence.ComparedValue{Site: t.exact.site(led.PC), Story: t.exact.offsetStory(from.Way)}
			if from.Known {
				v.Value = valueText(from.Value)
			}
			if from.Of != nil {
				v.Of = valueText(*from.Of)
			}
			if len(v.Story) > 0 {
				c.Compared = append(c.Compared, v)
			}
		}
	}
}

// conditionBefore is the last condition that decided that the program gave up, and is at a place or led there; nil: the trace has none.
func (x *exact) conditionBefore(site *evidence.Site) *provenance.Condition {
	r := x.reasons()
	if r == nil {
		return nil
	}
	for i := range r.Conditions {
		if c := &r.Conditions[i]; x.sameLine(c.PC, site.PC) || c.Next != 0 && x.sameLine(c.Next, site.PC) {
			return c
		}
	}
	return nil
}

// leadTo tells the branches that decided what happened.
func (t *tracedCauses) leadTo(r *provenance.Reasons, happened string) {
	var steps []evidence.CauseStep
	for i := range r.Conditions {
		c := &r.Conditions[i]
		s := t.exact.site(c.PC)
		if s == nil || slices.ContainsFunc(steps, func(x evidence.CauseStep) bool { return x.Site.File == s.File && x.Site.Line == s.Line }) {
			continue
		}
		text := "the branch at " + siteText(s)
		for k, v := range c.Tested {
			text += []string{" tested ", " and "}[min(k, 1)] + valueText(v)
		}
		steps = append([]evidence.CauseStep{t.exact.step(text, s)}, steps...)
		if len(steps) == mostTold {
			break
		}
	}
	if len(steps) == 0 {
		return
	}
	nearest := steps[len(steps)-1].Site
	t.out.Causes = append(t.out.Causes, evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisStore, Site: nearest, Story: steps, Proof: evidence.Replayed, Open: evidence.OpenDecision,
		Summary: "the condition at " + siteText(nearest) + " decided that " + happened})
}
