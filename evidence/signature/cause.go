package signature

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
)

// causeLines tell the first cause that was seen on a replay; nil without one. What
// only a rule says may be another thing tomorrow.
func causeLines(c *evidence.Case) []string {
	if c.Diagnosis == nil {
		return nil
	}
	for i := range c.Diagnosis.Causes {
		cause := &c.Diagnosis.Causes[i]
		if cause.Proof != evidence.Proved && cause.Proof != evidence.Replayed {
			continue
		}
		if cause.Interleaving != nil {
			return interleavingLines(c, cause)
		}
		return memoryLines(c, cause)
	}
	return nil
}

// memoryLines are the kind, where the object was allocated, and the store; nil if
// no place is known, for then every defect of that kind would be one. The variable
// does not count: as which of those that it went through a bad value is told depends
// on what the compiler kept.
func memoryLines(c *evidence.Case, cause *evidence.Cause) []string {
	store := cause.Site
	for i := 0; store == nil && i < len(cause.Story); i++ {
		store = cause.Story[i].Site
	}
	if store == nil {
		return nil
	}
	lines := []string{"program " + oneLine(base(c.Program.Exe, c.Program.Command)), "kind " + oneLine(string(cause.Kind))}
	if o := cause.Object; o != nil && o.Allocated != nil && o.Allocated.Site != nil {
		lines = append(lines, "allocated "+place(c, o.Allocated.Site))
	}
	return append(lines, valueLines(c, cause, store)...)
}

// interleavingLines are the variables, the class of the pattern and the places, in
// an order that does not depend on which thread came first.
func interleavingLines(c *evidence.Case, cause *evidence.Cause) []string {
	x := cause.Interleaving
	lines := []string{"program " + oneLine(base(c.Program.Exe, c.Program.Command))}
	if freed, used := freedInUse(x); freed != nil {
		return append(lines, freedLines(c, freed, used)...)
	}
	accesses, things := x.Failing, thingsOf(x)
	var within []string
	if class(x.Pattern) == inBetween {
		accesses, things = broken(x)
		within = between(c, x)
	}
	var places []string
	for i := range accesses {
		if s := accesses[i].Site; s != nil {
			places = append(places, "at "+place(c, s))
		}
	}
	if len(places) == 0 && cause.Site != nil {
		places = append(places, "at "+place(c, cause.Site))
	}
	if len(places) == 0 {
		return nil
	}
	var variables []string
	for i := range things {
		variables = append(variables, "variable "+variableOf(c, &things[i]))
	}
	return slices.Concat(lines, []string{"pattern " + class(x.Pattern)}, unique(variables), unique(places), within)
}

// thing is a variable, and the heap object that it is a part of; nil: none is known.
type thing struct {
	identity evidence.Identity
	object   *evidence.HeapObject
}

// thingsOf are the variables of an interleaving. Documents before version 2 have their
// names alone.
func thingsOf(x *evidence.Interleaving) []thing {
	var list []thing
	for i, name := range x.Variables {
		t := thing{identity: evidence.Expression(name)}
		if i < len(x.Identities) {
			t.identity = x.Identities[i]
		}
		for j := range x.Failing {
			if a := &x.Failing[j]; a.Variable == name && allocation(a.Object) != nil {
				t.object = a.Object
				break
			}
		}
		list = append(list, t)
	}
	return list
}

// thingOf is what an access is to.
func thingOf(x *evidence.Interleaving, a *evidence.SeenAccess) thing {
	t := thing{identity: a.Identity, object: a.Object}
	if t.identity.Kind == "" {
		t.identity = evidence.Expression(a.Variable)
	}
	for j := range x.Failing {
		if b := &x.Failing[j]; allocation(t.object) == nil && b.Variable == a.Variable {
			t.object = b.Object
		}
	}
	return t
}

// allocation is where an object was allocated; nil: it is not known.
func allocation(o *evidence.HeapObject) *evidence.Site {
	if o == nil || o.Allocated == nil {
		return nil
	}
	return o.Allocated.Site
}

// variableOf is a variable, or where the heap object was allocated that it is a part of:
// by which pointer that was found, and whether the member is known, depends on what the
// compiler kept.
func variableOf(c *evidence.Case, t *thing) string {
	if site := allocation(t.object); site != nil {
		return "allocated " + place(c, site)
	}
	return variable(&t.identity)
}

// freedInUse are the free of a heap object and another context's access to it after
// that; nil: there are none among the accesses. Which other accesses are told with them
// depends on what the compiler kept.
func freedInUse(x *evidence.Interleaving) (freed, used *evidence.SeenAccess) {
	for i := range x.Failing {
		a := &x.Failing[i]
		if o := a.Object; !a.ByHeap || a.Site == nil || o == nil || o.State == evidence.HeapLive {
			continue
		}
		for j := i + 1; j < len(x.Failing); j++ {
			b := &x.Failing[j]
			if b.Object != nil && b.Object.Addr == a.Object.Addr && b.Site != nil && otherContext(a, b) {
				return a, b
			}
		}
	}
	return nil, nil
}

// freedLines are where the object was allocated and freed, and where it was used and by
// which function that was called.
func freedLines(c *evidence.Case, freed, used *evidence.SeenAccess) []string {
	lines := []string{"pattern freed in use"}
	if o := freed.Object; o.Allocated != nil && o.Allocated.Site != nil {
		lines = append(lines, "allocated "+place(c, o.Allocated.Site))
	}
	lines = append(lines, "freed "+place(c, freed.Site), "used "+place(c, used.Site))
	if by := used.Caller(); by != nil && by.Function != "" && !ofLibrary(by) {
		lines = append(lines, "called by "+oneLine(functionName(by.Function)))
	}
	return lines
}

// between is where the function was called in which an interleaving began, if that
// function's lock was given back before the interleaving's end: what belongs together is
// the caller's then, and the place that of all its callers.
func between(c *evidence.Case, x *evidence.Interleaving) []string {
	if len(x.Failing) == 0 {
		return nil
	}
	first := &x.Failing[0]
	last := first
	for i := range x.Failing {
		if a := &x.Failing[i]; !otherContext(first, a) {
			last = a
		}
	}
	by := first.Caller()
	if last == first || by == nil || by.Function == "" || ofLibrary(by) || len(first.Locks) == 0 {
		return nil
	}
	if slices.ContainsFunc(last.Locks, func(l evidence.Lock) bool { return slices.Contains(first.Locks, l) }) {
		return nil // all of it is in one critical section
	}
	return []string{"called " + place(c, by)}
}

// inBetween is the class of patterns in which one context's accesses belong together
// and another one's come in between.
const inBetween = "in between"

// class is what a pattern is evidence of. A line that reads and writes in one
// (n -= x) is seen as either, so the letters are not the cause's but the run's.
func class(p evidence.PatternKind) string {
	switch p {
	case evidence.PatternRW, evidence.PatternWR, evidence.PatternWW:
		return "two accesses"
	case evidence.PatternRWR, evidence.PatternRWW, evidence.PatternWWR, evidence.PatternWRW, evidence.PatternPair:
		return inBetween
	}
	return oneLine(string(p))
}

// broken are the access that something began with, those of others to the same variable
// that broke into it, and the variable. By which access, and in which second variable,
// the first context met what they had done, depends on what the compiler kept in
// registers.
func broken(x *evidence.Interleaving) ([]evidence.SeenAccess, []thing) {
	if len(x.Failing) == 0 {
		return nil, thingsOf(x)
	}
	first := &x.Failing[0]
	list := []evidence.SeenAccess{*first}
	for _, a := range x.Failing[1:] {
		if a.Variable == first.Variable && otherContext(first, &a) {
			list = append(list, a)
		}
	}
	if len(list) == 1 {
		return x.Failing, thingsOf(x)
	}
	return list, []thing{thingOf(x, first)}
}

func otherContext(a, b *evidence.SeenAccess) bool {
	return a.Thread != b.Thread || a.Handler != b.Handler
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// place is a function with the text of the line in it, or the next best that is
// known: the line's number in its file, or the offset in the object.
func place(c *evidence.Case, s *evidence.Site) string {
	if s.Function == "" && s.Line == 0 {
		return oneLine(frameName(s))
	}
	name := functionName(s.Function)
	if text := statement(sourceText(c, s)); text != "" {
		return oneLine(name + ": " + text)
	}
	if s.Line > 0 {
		return oneLine(fmt.Sprintf("%s %s:%d", name, path.Base(s.File), s.Line))
	}
	return oneLine(frameName(s))
}

// sourceText is the line's, empty if the source is not at hand or was changed since
// it was compiled: another line's text would be worse than none.
func sourceText(c *evidence.Case, s *evidence.Site) string {
	for i := range c.Sources {
		src := &c.Sources[i]
		if src.File != s.File || src.Stale {
			continue
		}
		for _, l := range src.Lines {
			if l.Number == s.Line {
				return l.Text
			}
		}
	}
	return ""
}

// variable is a variable, or an object, without what differs between runs and builds: an
// address differs by run, an element by the input, and a line's number by build.
// Whether it is known which member of a heap object it is depends on the compiler: the
// places tell. The words are a part of the key, so they stay as they are.
func variable(v *evidence.Identity) string {
	switch v.Kind {
	case evidence.IdentityHeap:
		if v.Site == nil || v.Site.File == "" {
			return "heap object"
		}
		return oneLine(v.Name + " at " + path.Base(v.Site.File))
	case evidence.IdentityMemory:
		if v.Size == 0 {
			return ""
		}
		return fmt.Sprintf(":%d", v.Size)
	case evidence.IdentityReturn:
		return oneLine(v.Function + "'s return address")
	case evidence.IdentityStack:
		return oneLine(v.Function + "'s " + v.Name + withoutElements(v.Path))
	}
	return oneLine(v.Name + withoutElements(v.Path))
}

func withoutElements(path []evidence.PathStep) string {
	var b strings.Builder
	for i := range path {
		if path[i].Element != nil && *path[i].Element >= 0 {
			b.WriteString("[]")
		} else {
			b.WriteString(path[i].String())
		}
	}
	return b.String()
}

// statement is a source line without comments and without more than one space
// between its words.
func statement(text string) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' && closes(text[i+1:]):
			quote = c
		case strings.HasPrefix(text[i:], "//"):
			return strings.Join(strings.Fields(b.String()), " ")
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return strings.Join(strings.Fields(b.String()), " ")
			}
			i += 2 + end + 1
			c = ' '
		}
		b.WriteByte(c)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// closes tells a character from a lifetime of Rust, which has one quote, and from
// the digits that C++ separates by it.
func closes(rest string) bool {
	return len(rest) >= 2 && rest[1] == '\'' || len(rest) >= 3 && rest[0] == '\\'
}

// longest bounds a line, because a symbol may have a megabyte: the rest is
// digested into it.
const longest = 512

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "... " + digest([]string{text})
}
