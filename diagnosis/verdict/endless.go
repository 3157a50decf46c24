package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay"
)

// endless is for a recursion that used up the stack as it went around in a cycle of pointers. The store that closed the cycle is the cause, if all of its
// pointers are the same member of their objects, and had not led around before. Else they may lead back as they should, and another thing should have ended
// the recursion.
func (w *work) endless() (found bool) {
	f := &w.Case.Failure
	if f.Kind != evidence.StackOverflow || f.Recursion == nil {
		return false
	}
	if !w.tracedCauses.recorded() || w.exact.trace == nil {
		return false
	}
	c := provenance.Recurs(w.exact.trace, w.exact.program, w.exact.last(), func(function string) bool {
		return slices.ContainsFunc(f.Recursion.Cycle, func(s evidence.Site) bool { return s.Function == function })
	})
	if c == nil || c.Closing == nil {
		return false
	}
	site := w.exact.site(c.StoredPC)
	if site == nil {
		return false
	}
	name := cmp.Or(c.Closing.Name, nameOf(w.Process, w.Object, c.Closing.Addr))
	stored := fmt.Sprintf("%s stored %#x in %s", siteText(site), c.Closing.Value, name)
	cause := evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisStore, Variable: name, Site: site, Proof: evidence.Replayed,
		Summary: fmt.Sprintf("%s, which closed a cycle: %s comes to the same memory again after %s", stored, evidence.ShortName(c.Function), wording.Count(uint64(c.Calls), "call")),
		Story:   []evidence.CauseStep{w.exact.step(stored, site)}}
	if !c.Alike || c.Ring {
		cause.Open = evidence.OpenOrigin
	}
	w.withoutStore(&cause, c)
	if !refuted(&cause) {
		w.out.Causes = append(w.out.Causes, cause)
	}
	return !refuted(&cause)
}

// withoutStore finds out whether the program still uses up the stack if the word that closed the cycle keeps what it held before.
func (w *work) withoutStore(cause *evidence.Cause, c *provenance.Cycle) {
	at, ok := w.exact.moment(c.Stored)
	next := w.exact.trace.Next(c.Stored)
	if !ok || !c.Known || next < 0 {
		return
	}
	after, ok := w.exact.moment(next)
	if !ok {
		return
	}
	x := change{what: "the store skipped", link: noLink, event: &evidence.Event{Thing: cause.Variable, At: at}, options: replay.FreeRequest{
		Edits: []replay.Edit{{Kind: replay.EditStore, At: after, Addr: c.Closing.Addr, Value: c.Before, Size: c.Closing.Size}}}}
	cause.Experiments = append(cause.Experiments, w.experiments.unchanged(w.rec), w.experiments.without(&x))
	if cause.Open == "" && cause.Experiments[0].Agrees() && cause.Experiments[1].Agrees() {
		w.experiments.proveBy(cause, *x.event)
	}
}

// moment is that before step n; ok is false if the trace does not have all instructions since the thread's event before.
func (x *window) moment(n int) (m evidence.Moment, ok bool) {
	s := x.trace.Step(n)
	if s.Library {
		return m, false
	}
	m = evidence.Moment{Thread: s.Thread, Ordinal: s.Ordinal, PC: s.PC}
	for at := n; at >= 0; at = x.trace.Previous(at) {
		o := x.trace.Step(at)
		if o.Ordinal != s.Ordinal {
			return m, true
		}
		if o.PC == s.PC && !o.Library {
			m.Count++
		}
	}
	return m, x.whole
}
