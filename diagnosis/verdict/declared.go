package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// declaredNull has a cause name the use of a null pointer where all that was found is that the variable had been declared with it in the same function: until
// something is stored in it the variable is meant to be null. Either the use lacks a test, or a store was not made; the declaration is not to be changed.
func (w *work) declaredNull() {
	f := &w.Case.Failure
	if f.Kind != evidence.NullPointer || f.Site == nil || f.Site.Line == 0 {
		return
	}
	for i := range w.out.Causes {
		c := &w.out.Causes[i]
		if c.Kind != evidence.CauseBadValue || c.Proof == evidence.Proved || c.Site == nil || c.Site.Function != f.Site.Function || !toldAt(c.Story, c.Site) {
			continue
		}
		v := declaredAfter(w.Process, f.Site.PC, f.Pointer, c.Site)
		if v == nil {
			continue
		}
		use, declared := *f.Site, evidence.Site{File: v.File, Line: v.Line}
		c.Site, c.Variable = &use, v.Name
		c.Summary = fmt.Sprintf("%s uses %s, which is null there as it was declared (%s)", siteText(&use), v.Name, lineText(&declared))
	}
}

// toldAt reports whether all steps of a story are of one line.
func toldAt(story []evidence.CauseStep, at *evidence.Site) bool {
	return !slices.ContainsFunc(story, func(s evidence.CauseStep) bool {
		place := s.Site
		if s.Access != nil {
			place = s.Access.Site
		}
		return place == nil || place.File != at.File || place.Line != at.Line
	})
}

// declaredAfter is a variable in scope at an instruction that was declared at the line of a place or a later one: what was executed there
// is its declaration, of which a compiler may move a part to lines before it. Where no variable has the name, it is the only pointer that was declared at
// that line. nil: there is none.
func declaredAfter(p *image.Process, pc evidence.Addr, name string, at *evidence.Site) *debuginfo.Variable {
	m := p.ModuleAt(pc)
	if m == nil || at.Line == 0 {
		return nil
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil
	}
	link := m.LinkAddr(pc)
	calls, err := info.CallsAt(link)
	if err != nil {
		return nil
	}
	var named *debuginfo.Variable
	var there []debuginfo.Variable
	for _, call := range calls {
		variables, err := info.VariablesAt(call, link)
		if err != nil {
			return nil
		}
		for _, v := range variables {
			switch {
			case v.Name == name && (named == nil || v.Depth > named.Depth): // it hides the other one
				named = &v
			case v.Type != nil && v.Type.Kind() == debuginfo.KindPointer && !v.Parameter && v.File == at.File && v.Line == at.Line:
				there = append(there, v)
			}
		}
		if named != nil {
			break
		}
	}
	switch {
	case named != nil:
		if !named.Parameter && named.File == at.File && named.Line >= at.Line {
			return named
		}
	case len(there) == 1: // the failing instruction names only a register
		return &there[0]
	}
	return nil
}
