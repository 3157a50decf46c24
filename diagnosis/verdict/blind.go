package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
)

// blindWait is for a program that failed by what a thread used after a wait for a condition variable, although the condition that it had tested before still held
// when the wait returned: the thread that failed, or one that stored what had a part in the failure. A cause that is proved says more.
func (w *work) blindWait() error {
	if w.Case == nil || slices.ContainsFunc(w.out.Causes, func(c evidence.Cause) bool { return c.Proof == evidence.Proved }) {
		return nil
	}
	x := w.exact
	if !w.tracedCauses.recorded() || x.trace == nil || x.trace.Threads() < 2 {
		return nil
	}
	reached := x.reached()
	if reached == nil {
		return nil
	}
	waits := provenance.ContinuedTo(x.trace, x.program, reached)
	gaveUp := -1
	if endedItself(w.Case) {
		gaveUp, _ = x.gaveUpAt()
	}
	if own := provenance.Continued(x.trace, x.program, x.last(), gaveUp); own != nil {
		waits = slices.Insert(waits, 0, own)
	}
	part := -1
	var b *provenance.BlindWait
	for _, b = range waits {
		if part = slices.IndexFunc(b.Words, func(o provenance.TestedWord) bool { return reached.From(o.Addr, o.Size) }); part >= 0 {
			break
		}
	}
	if part < 0 {
		return nil // what was used has nothing to do with what had been tested
	}
	wait, tested := x.site(b.PC), x.site(b.Tested)
	if wait == nil || tested == nil {
		return nil
	}
	word := &b.Words[part]
	name := cmp.Or(word.Name, targetsAt(w.Process, w.Object, word.Addr, word.Size, "")[0].Name)
	cause := evidence.Cause{Kind: evidence.CauseAtomicity, Basis: evidence.BasisOrder, Variable: name, Site: wait, Proof: evidence.Replayed,
		Summary: fmt.Sprintf("%s waits for a condition variable once, and the thread continued although by the test at %s it had to wait again", siteText(wait), siteText(tested)),
		Story: []evidence.CauseStep{x.step(siteText(tested)+" found that it had to wait", tested),
			x.step(siteText(wait)+" waited; after that the same test would have found that it had to wait again", wait)}}
	w.out.Causes = slices.Insert(w.out.Causes, 0, cause)
	return nil
}
