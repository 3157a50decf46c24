package delta

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
)

// SiteText names a place of the code for readers: "bank.c:12 (deposit)".
func SiteText(c *evidence.Context) string {
	s := &c.Site
	switch {
	case s.File != "" && s.Function != "":
		return fmt.Sprintf("%s:%d (%s)", path.Base(s.File), s.Line, s.Function)
	case s.File != "":
		return fmt.Sprintf("%s:%d", path.Base(s.File), s.Line)
	case s.Function != "":
		return fmt.Sprintf("%s+0x%x", s.Function, s.FunctionOffset)
	}
	return c.Key
}

// PlaceText names the role and the place: "worker at bank.c:12 (deposit)". If
// both have the same name it occurs once.
func (r *Runs) PlaceText(p Place) string {
	c := r.Code(p)
	if c.Site.File != "" && evidence.ShortName(c.Site.Function) == evidence.ShortName(r.Role(p)) {
		return fmt.Sprintf("%s at %s:%d", r.Role(p), path.Base(c.Site.File), c.Site.Line)
	}
	return r.who(p) + " at " + SiteText(c)
}

// who describes a role.
func (r *Runs) who(p Place) string {
	role := r.role(p)
	switch role.kind {
	case roleUnknown:
		return "a thread"
	case roleHandler:
		return "the " + role.name
	}
	return role.name
}

func (r *Runs) text(d *Difference) string {
	code := SiteText(r.Code(d.Place))
	what := fmt.Sprintf("%s reads %s at %s", r.who(d.Place), d.Variable, code)
	if d.Writes {
		what = fmt.Sprintf("%s writes %s at %s", r.who(d.Place), d.Variable, code)
	}
	switch d.Kind {
	case OnlyFailing:
		return what + " in " + these(d.Failing, "failing") + ", and in no passing one"
	case OnlyPassing:
		return what + " in " + these(d.Passing, "passing") + ", and in no failing one"
	case Values:
		return fmt.Sprintf("%s: the value is %s in %s, and %s in passing ones", what,
			valuesText(d.Failing.Values), these(d.Failing, "failing"), valuesText(d.Passing.Values))
	}
	text := fmt.Sprintf("%s: in %s it sees %s", what, these(d.Failing, "failing"), r.sourcesText(d.Failing.Sources))
	if len(d.Passing.Sources) > 0 {
		return text + ", in passing ones " + r.sourcesText(d.Passing.Sources)
	}
	return text + ", never in passing ones"
}

func these(s Side, kind string) string {
	if s.Of == 1 {
		return "the " + kind + " run"
	}
	return fmt.Sprintf("%d of %d %s runs", s.Runs, s.Of, kind)
}

func valuesText(values []uint64) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, ValueText(v))
	}
	return strings.Join(parts, " or ")
}

// ValueText formats a word whose type is not known: small ones are numbers, the
// others are likely addresses or bits.
func ValueText(v uint64) string {
	if v < 1<<16 {
		return fmt.Sprintf("%d", v)
	}
	return fmt.Sprintf("0x%x", v)
}

// mostTold bounds the sources that are named.
const mostTold = 8

func (r *Runs) sourcesText(sources []Source) string {
	var parts []string
	for i, s := range sources {
		if i == mostTold {
			parts = append(parts, fmt.Sprintf("what %d other places wrote", len(sources)-i))
			break
		}
		if s.Initial {
			parts = append(parts, "the value before any write")
			continue
		}
		parts = append(parts, "what "+r.who(s.Place)+" wrote at "+SiteText(r.Code(s.Place)))
	}
	return strings.Join(parts, " or ")
}
