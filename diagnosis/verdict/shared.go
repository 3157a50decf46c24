package verdict

import (
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
)

// tellShared adds to causes that an object was used after it had been freed which code put its address in a second place, if it was freed
// through one and used through the other. Code that copies a pointer, and not what it points to, is the mistake then as often as the free.
func (t *tracedCauses) tellShared() {
	for i := range t.out.Causes {
		c := &t.out.Causes[i]
		if c.Kind != evidence.CauseDoubleFree && c.Kind != evidence.CauseUseAfterFree || c.Object == nil || !t.recorded() || t.exact.trace == nil {
			continue
		}
		x := provenance.SharedBy(t.exact.trace, t.exact.program, c.Object.Addr, t.exact.failing())
		if x == nil {
			continue
		}
		s := t.exact.site(x.PC)
		if s == nil || slices.ContainsFunc(c.Story, func(step evidence.CauseStep) bool {
			return step.Site != nil && step.Site.File == s.File && step.Site.Line == s.Line
		}) {
			continue
		}
		text := siteText(s) + " had stored its address in a second place, through which it is used"
		if x.Freed {
			text = siteText(s) + " had stored its address in a second place, through which it was freed"
		}
		c.Story = append([]evidence.CauseStep{t.exact.step(text, s)}, c.Story...)
	}
}
