package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// invalidation is the call of a container's function, at the place of the free, that freed the victim's object; nil: it
// was freed otherwise. The replay has the whole stack of the free, where it stopped there; the heap has a part.
func (ac *account) invalidation(site *evidence.Site) *evidence.Invalidation {
	if function, ok := image.ContainerFunction(ac.chain.made.seen.Library); ok && site != nil {
		thread := ac.chain.made.seen.Thread
		return &evidence.Invalidation{Function: function, Site: site, Thread: &thread}
	}
	return image.InvalidatedBy(ac.chain.victim.finding.Object.Freed)
}

// invalidatedText says what the call freed: the element of an iterator of the program, if one is known to point there.
func (ac *account) invalidatedText(i *evidence.Invalidation) string {
	text := i.Function
	if i.Site != nil {
		text += ", called in " + siteText(i.Site) + ","
	}
	if u := ac.staleIterator(); u != nil {
		return fmt.Sprintf("%s freed the element that %s, an iterator, points to", text, u.Iterator.Name)
	}
	return text + " freed the object of " + sizeText(ac.chain.victim.finding.Object)
}

// staleIterator is the use of an iterator of the program that points into the victim's object; nil: none is known.
func (ac *account) staleIterator() *evidence.ContainerUse {
	o := ac.chain.victim.finding.Object
	for k := range ac.chain.Case.Findings {
		u := ac.chain.Case.Findings[k].Container
		if u != nil && u.Misuse == evidence.MisuseStale && u.Iterator.Name != "" && u.Iterator.Position >= o.Addr &&
			uint64(u.Iterator.Position-o.Addr) < max(o.Size, 1) {
			return u
		}
	}
	return nil
}

// containerSteps tell which container the iterator is of. It is inferred: none of its elements is there.
func (ac *account) containerSteps() []evidence.CauseStep {
	u := ac.staleIterator()
	if u == nil || u.Container == nil || u.Container.Name == "" {
		return nil
	}
	return []evidence.CauseStep{{Text: fmt.Sprintf("%s points to no element of %s any more", u.Iterator.Name, u.Container.Name),
		Site: ac.chain.Case.Failure.Site, Proof: evidence.Inferred}}
}
