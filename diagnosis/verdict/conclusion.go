package verdict

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// conclusion is what a diagnosis comes to: the causes that it found, in their order.
type conclusion struct {
	in  *Input
	out *evidence.Diagnosis
	// asides are uses of freed objects of which it is not known that they have to do with the
	// failure.
	asides []evidence.Cause
	// apart are those without which the run fails all the same.
	apart []evidence.Cause
	// contradicted are those that every experiment speaks against.
	contradicted []evidence.Cause
}

// rank puts causes that experiments proved first. Of equals, where a bad value
// came from says less than why it could be there, and a cause that was found from what
// the failing code tested comes before an aside.
func (k *conclusion) rank() {
	k.orderedFirst()
	level := map[evidence.Proof]int{evidence.Proved: 0, evidence.Replayed: 1, evidence.FromCore: 2, evidence.Inferred: 3}
	class := map[evidence.CauseKind]int{evidence.CauseBadValue: 1, evidence.CauseUninitialised: 1}
	slices.SortStableFunc(k.out.Causes, func(a, b evidence.Cause) int {
		return cmp.Or(cmp.Compare(level[a.Proof], level[b.Proof]), cmp.Compare(class[a.Kind], class[b.Kind]))
	})
	k.out.Causes = append(k.out.Causes, k.asides...)
	slices.SortStableFunc(k.out.Causes, func(a, b evidence.Cause) int { return cmp.Compare(level[a.Proof], level[b.Proof]) })
}

// setLeadsApart moves causes whose way ended before a place that is known to be wrong to the leads.
func (k *conclusion) setLeadsApart() {
	lead := func(c evidence.Cause) bool { return c.Open != "" }
	for _, c := range k.out.Causes {
		if lead(c) {
			k.out.Leads = append(k.out.Leads, c)
		}
	}
	k.out.Causes = slices.DeleteFunc(k.out.Causes, lead)
	k.out.Leads = append(k.out.Leads, k.apart...)
}

// setBases gives causes the basis that their kind has, where the code that made them has given none.
func (k *conclusion) setBases() {
	for c := range k.out.Told() {
		if c.Basis == "" {
			c.Basis = evidence.BasisOf(c.Kind)
		}
	}
}

// reword hands all sentences of the causes to evidence.Say, as what they are made of is
// put together in several places.
func (k *conclusion) reword() {
	for c := range k.out.Told() {
		c.Summary = evidence.Say(c.Summary)
		for j := range c.Story {
			c.Story[j].Text = evidence.Say(c.Story[j].Text)
		}
		for i := range c.Compared {
			for j := range c.Compared[i].Story {
				c.Compared[i].Story[j].Text = evidence.Say(c.Compared[i].Story[j].Text)
			}
		}
	}
	for i := range k.out.Excluded {
		k.out.Excluded[i].Text = evidence.Say(k.out.Excluded[i].Text)
	}
	for i := range k.out.Divergences {
		d := &k.out.Divergences[i]
		d.Text = evidence.Say(d.Text)
		for j := range d.Origin {
			d.Origin[j].Text = evidence.Say(d.Origin[j].Text)
		}
	}
	for i := range k.out.Differences {
		k.out.Differences[i] = evidence.Say(k.out.Differences[i])
	}
}
