package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// describe puts what gave the value into words, and says how to go on.
func (k *walk) describe(c *chain, in staticscan.Input, x *pathsByLevel, g *staticscan.Given, out *returned) {
	level := len(k.into)
	site := g.Site
	out.site = &site
	if g.Course != nil && g.Outward == 0 {
		out.ledBy = staticscan.LedTo(in, g.Course, g.Step)
		out.later = staticscan.LastCondition(in, g.Course, g.Step)
	}
	switch g.Kind {
	case evidence.OriginConstant:
		out.how = "returned " + valueText(out.value)
		if g.Name != "" {
			out.how += " (" + g.Name + ")"
		}
		out.open = c.foldedEnd(&site, out.value)
		if out.value == 0 && out.ledBy != nil && out.ledBy.Zero != image.RIP && unasked(c.Process, in, g.Course, out) {
			out.open = evidence.OpenEmpty
		}
		if k.status {
			out.open = evidence.OpenDecision
			if g.Course != nil && g.Outward == 0 {
				k.decided(c, in, x, g, out)
			}
		}
	case evidence.OriginCell:
		name := g.Name
		if !isName(name) {
			name = nameOf(c.Process, c.Object, g.Cell)
		}
		out.how = fmt.Sprintf("returned %s, which it had from %s", valueText(out.value), name)
		if k.ended(c, in, g, out) {
			return
		}
		value := g.Value
		out.cell = &victim{kind: evidence.CauseBadValue, name: name, typ: g.Type, start: g.Cell, size: max(1, min(g.Size, wordSize)), value: &value,
			readPC: g.Course.Steps[g.Step].Registers.PC()}
	case evidence.OriginResult:
		out.how = fmt.Sprintf("returned %s, which a call at %s had returned", valueText(out.value), lineText(out.site))
		out.ledBy, out.later, out.open = nil, nil, evidence.OpenCall
		value := out.value
		k.inside(x, level-g.Outward, g.Step, &value)
	case evidence.OriginArgument:
		out.how = fmt.Sprintf("returned %s, which it was handed", valueText(out.value))
		out.site, out.open = x.call.site, evidence.OpenOrigin
		k.argument = &g.Register
	default:
		out.how = fmt.Sprintf("returned %s", valueText(out.value))
		if k.ended(c, in, g, out) {
			return
		}
		c.end.text, out.open = g.Text, evidence.OpenOrigin
		if k.status && g.Course != nil && g.Outward == 0 {
			if tested, ok := staticscan.ChosenBy(in, g.Course, g.Step); ok {
				c.end.text = ""
				k.tests(c, x, &tested, out)
			}
		}
	}
}

// ended reports whether the function found that a value was 0 and then returned it, as a search does that has come to its end: it knew what
// it returned. The condition is what matters then.
func (k *walk) ended(c *chain, in staticscan.Input, g *staticscan.Given, out *returned) bool {
	if g.Tested == nil || !g.Again && c.handsOn(in.Process, g) {
		return false
	}
	out.how = "returned " + valueText(out.value)
	out.ledBy, out.later = g.Tested, nil
	if last := staticscan.LastCondition(in, g.Course, g.Tested.Step); g.Tested.Inlined && last != nil {
		out.ledBy = last
	}
	tested := out.ledBy.Site
	out.site = &tested
	if k.status {
		out.open = evidence.OpenDecision
	}
	return true
}

// valueText is a value in words.
func valueText(v uint64) string {
	const small = 4096
	switch {
	case v == 0:
		return "0"
	case v < small:
		return fmt.Sprint(v)
	case int64(v) < 0 && int64(v) > -small:
		return fmt.Sprint(int64(v))
	case v>>32 == 0 && int32(v) < 0 && int32(v) > -small:
		return fmt.Sprint(int32(v))
	}
	return fmt.Sprintf("%#x", v)
}

func lineText(s *evidence.Site) string {
	if s == nil || s.File == "" {
		return "a place without a line"
	}
	return fmt.Sprintf("%s:%d", s.File[strings.LastIndexByte(s.File, '/')+1:], s.Line)
}

// literal is a return of what stands in the code.
var literal = regexp.MustCompile(`\breturn\s*(?:\(\s*)?(?:NULL|nullptr|0[xX]?0*[uUlL]*|-\s*\d+|\d+|false|None|\{\s*\}|std::nullopt)?\s*\)?\s*;`)
var anyReturn = regexp.MustCompile(`\breturn\b`)

// handsOn reports whether the source says, at a line that the function came by behind
// the condition, that it returns something else than a constant. Compilers return what
// they know to be 0 where the source has the constant.
func (w *work) handsOn(p *image.Process, g *staticscan.Given) bool {
	if w.SourceLine == nil {
		return false
	}
	seen := map[int]bool{}
	found := false
	for i := g.Tested.Step + 1; i < len(g.Course.Steps); i++ {
		s := ownSite(p, g.Course.Steps[i].Registers.PC())
		if s.Line == 0 || s.File == "" || seen[s.Line] {
			continue
		}
		seen[s.Line] = true
		text, ok := w.SourceLine(s)
		switch {
		case !ok || !anyReturn.MatchString(text):
		case literal.MatchString(text):
			return false
		default:
			found = true
		}
	}
	return found
}

// text is what was returned in a sentence.
func (r *returned) text() string {
	text := r.function
	if inner := r.inner(); inner != "" {
		text = inner
	}
	if r.site != nil && r.site.Line != 0 {
		text += " (" + lineText(r.site) + ")"
	}
	text += " " + r.how
	switch {
	case r.later != nil:
		text += "; the last condition after it was at " + conditionText(r.later)
	case r.ledBy != nil && (r.site == nil || r.ledBy.Site.Line != r.site.Line || r.ledBy.Text != ""):
		text += "; the condition that led there is at " + conditionText(r.ledBy)
	}
	return text
}

// inner is the function that set the value, where that is another one than was called: it
// was inlined there, or jumped to. Empty: it is that one.
func (r *returned) inner() string {
	if r.site == nil || r.library || r.shared || image.LibraryCode(r.site) {
		return ""
	}
	if name := evidence.ShortName(r.site.Function); name != "" && name != r.function {
		return fmt.Sprintf("%s, for %s,", name, r.function)
	}
	return ""
}

func conditionText(c *staticscan.Condition) string {
	text := lineText(&c.Site)
	if c.Text != "" {
		text += ", where " + c.Text
	}
	return text
}

// hasReturned reports whether the chain leads through what calls returned.
func (ac *account) hasReturned() bool {
	return slices.ContainsFunc(ac.chain.links, func(l link) bool { return l.returned != nil })
}

// returnedSummary is the cause in a sentence.
func (ac *account) returnedSummary() string {
	var last *returned
	for i := range ac.chain.links {
		if r := ac.chain.links[i].returned; r != nil {
			last = r
		}
	}
	text := last.text() + ac.unchecked(last)
	if f := &ac.chain.Case.Failure; f.PointerResult != "" && ac.chain.victim.name == f.Pointer {
		return text
	}
	return fmt.Sprintf("%s is bad because %s", ac.chain.victim.name, text)
}

// unchecked says where a null pointer that a library's function returned is used.
func (ac *account) unchecked(r *returned) string {
	f := &ac.chain.Case.Failure
	if !r.library || r.value != 0 || f.Kind != evidence.NullPointer || f.Site == nil || f.Site.Line == 0 {
		return ""
	}
	if r.site != nil && r.site.File == f.Site.File && r.site.Line == f.Site.Line {
		return "; it is used there unchecked"
	}
	return fmt.Sprintf("; %s uses it unchecked", siteText(f.Site))
}

// step is the link as a part of the story.
func (r *returned) step() evidence.CauseStep {
	return evidence.CauseStep{Text: r.text(), Site: r.site, Proof: evidence.Replayed}
}
