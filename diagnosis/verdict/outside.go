package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/staticscan"
)

// beyond is the failing instruction's access, if it lies outside of the array that its
// code means.
func beyond(c *evidence.Case, b *staticscan.Blame) *staticscan.Outside {
	if b == nil || b.Role == "" || c.Failure.Fault == nil {
		return nil
	}
	return b.Beyond
}

// readOutside is the read outside of an array that the failing instruction's bad value
// came by; nil: there is none.
func readOutside(c *evidence.Case, b *staticscan.Blame) *staticscan.Outside {
	if b == nil || b.Role == "" || c.Failure.Fault == nil {
		return nil
	}
	return b.Outside
}

// indexVictim is the memory that the index of an access came from; ok is false if it was
// in none, as far as is known.
func (c *chain) indexVictim(o *staticscan.Outside) (v victim, ok bool) {
	b := &o.Index
	if b.Cell == nil || b.Value == nil {
		c.end.text = "the index was in no memory, as far as is known"
		return victim{}, false
	}
	v = victim{kind: evidence.CauseBadValue, name: b.CellName, typ: b.CellType, start: *b.Cell, size: max(1, min(b.CellSize, wordSize)), readPC: b.Loaded.PC}
	if !isName(v.name) {
		v.name = nameOf(c.Process, c.Object, v.start)
	}
	if b.CellHolds {
		value := uint64(*b.Value)
		if v.size < wordSize {
			value &= 1<<(8*v.size) - 1
		}
		v.value = &value
	}
	return v, true
}

// outsideOf goes on from a store of what was read outside of an array: what the program
// keeps there has nothing to do with it, the index has.
func (c *chain) outsideOf(l *link, o *staticscan.Outside) (victim, bool) {
	c.outside = o
	index := *l
	index.store.Blame = o.Index
	if cell := c.visits.cellOf(&index); cell != nil {
		return *cell, true
	}
	c.end.text = "the index was in no memory, as far as is known"
	return victim{}, false
}

func outsideAccess(o *staticscan.Outside) *evidence.OutsideAccess {
	site := o.Site
	return &evidence.OutsideAccess{Variable: o.Array, Size: o.Size, Addr: o.Addr, Write: o.Writes, Site: &site}
}

// outsideText is the access in a sentence.
func outsideText(o *staticscan.Outside) string {
	verb := "reads"
	if o.Writes {
		verb = "writes"
	}
	if n, ok := o.Number(); ok {
		return fmt.Sprintf("%s %s %s[%d], and %s has %d elements", siteText(&o.Site), verb, o.Array, n, o.Array, o.Size/o.Element)
	}
	far := distance(uint64(o.From-o.Addr)-1, "before the start")
	if o.Addr >= o.From {
		far = distance(uint64(o.Addr-o.From)-o.Size, "past the end")
	}
	return fmt.Sprintf("%s %s memory %s of %s, which has %s", siteText(&o.Site), verb, far, o.Array, wording.Count(o.Size, "byte"))
}

// outsideCause is for an access outside of an array whose index comes from no memory that
// anything was stored to.
func (ac *account) outsideCause() *evidence.Cause {
	site := ac.chain.outside.Site
	out := &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisBounds, Variable: ac.chain.outside.Array, Site: &site, Proof: evidence.Replayed, Summary: outsideText(ac.chain.outside), Outside: outsideAccess(ac.chain.outside)}
	if ac.chain.outside.Index.Pointer != "" {
		out.Variable = ac.chain.outside.Index.Pointer
	}
	if ac.chain.outside == beyond(ac.chain.Case, ac.chain.Blame) {
		out.Open = evidence.OpenOrigin // the failure itself says as much; what made the index is not known
	}
	text := "no element is stored there"
	if ac.chain.end.text != "" {
		text = ac.chain.end.text
	}
	out.Story = []evidence.CauseStep{{Text: text, Site: &site, Proof: evidence.Inferred}}
	return out
}
