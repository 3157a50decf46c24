package verdict

import (
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
)

// ofNoElements makes leads of the causes of a null pointer where that may be right, as the pointer to no elements, and the access one too
// many: which of the two is wrong is not computed. What let the access happen is the first lead.
func (w *work) ofNoElements() {
	f, x := &w.Case.Failure, w.exact
	if f.Kind != evidence.NullPointer && f.Kind != evidence.NearNullPointer || x.trace == nil || !x.failed() {
		return
	}
	wanted := func(c evidence.Cause) bool {
		return c.Kind == evidence.CauseBadValue && c.Proof != evidence.Proved && c.Open == "" && c.Interleaving == nil
	}
	if len(w.Passing) > 0 || !slices.ContainsFunc(w.out.Causes, wanted) {
		return // the difference from a run that passes tells that null is bad
	}
	excess, ok := provenance.Empty(x.trace, x.program, x.last())
	if !ok {
		return
	}
	for i := range w.out.Causes {
		if c := &w.out.Causes[i]; wanted(*c) {
			c.Open = evidence.OpenEmpty
		}
	}
	site := x.site(excess.PC)
	if site == nil {
		return
	}
	lead := evidence.Cause{Kind: evidence.CauseBadValue, Site: site, Proof: evidence.Replayed, Open: evidence.OpenEmpty,
		Summary: fmt.Sprintf("the condition at %s let element 0 pass, with a limit of 0", siteText(site))}
	if excess.Size > 0 {
		lead.Summary = fmt.Sprintf("%s made a size of %d of one of 0", siteText(site), excess.Size)
	}
	lead.Story = []evidence.CauseStep{x.step(lead.Summary, site)}
	w.out.Causes = append([]evidence.Cause{lead}, w.out.Causes...)
}
