package score

import (
	"path"
	"reflect"
	"strings"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/sanitizer"
	"diagnose/evidence"
)

// target is what places are compared with.
type target struct {
	answer *mutant.Answer
}

// root reports whether a site is a line of the bug.
func (t target) root(s *evidence.Site) bool {
	if s == nil {
		return false
	}
	for _, line := range t.answer.Root {
		if same(s, sanitizer.Place{File: t.answer.File, Line: line}) {
			return true
		}
	}
	return false
}

// violates reports whether a site is a line of the first violation. Where a function of the
// program frees for others, its caller is as good an answer.
func (t target) violates(s *evidence.Site) bool {
	v := t.answer.Violation
	if v == nil || s == nil {
		return false
	}
	places := v.Accesses
	if v.Class == sanitizer.Lifetime {
		places = append(places[:len(places):len(places)], v.Callers[:min(1, len(v.Callers))]...)
	}
	return among(s, places)
}

// object reports whether a heap object is that of the first violation. Programs allocate
// through functions of their own, which the report passes over: the inner callers count.
func (t target) object(o *evidence.HeapObject) bool {
	v := t.answer.Violation
	if v == nil || o == nil || o.Allocated == nil || len(v.Allocated) == 0 {
		return false
	}
	return among(o.Allocated.Site, v.Allocated[:min(3, len(v.Allocated))])
}

// unsignalled reports whether a variable is the one whose signal was taken out: nothing is left in the code to name but that.
func (t target) unsignalled(variable string) bool {
	name := t.answer.Unsignalled
	return name != "" && (variable == name || strings.HasSuffix(variable, "."+name) || strings.HasSuffix(variable, ">"+name))
}

// unset reports whether a cause says that the variable or the member has no value whose initialisation was taken out: the uses of it are all
// that is left in the code. A variable is only known by its name in its function.
func (t target) unset(c *evidence.Cause) bool {
	u := t.answer.Unset
	if u == nil || c.Kind != evidence.CauseUninitialised || c.Site == nil {
		return false
	}
	name, parts := partsOf(c.Variable)
	last := len(parts) - 1
	return last >= 0 && parts[last] == u.Name || name == u.Name && sameFunction(c.Site.Function, u.Function)
}

// sameFunction compares a function's name in the debug information with that in the source, which may have fewer scopes and no parameters.
func sameFunction(name, inSource string) bool {
	name, _, _ = strings.Cut(name, "(")
	return name == inSource || strings.HasSuffix(name, "::"+inSource)
}

// partsOf takes an expression such as "*a->b[2].c" apart: the variable, and the members that it names, without the indexes.
func partsOf(expression string) (variable string, members []string) {
	parts := strings.FieldsFunc(strings.ReplaceAll(expression, "->", "."), func(r rune) bool { return r == '.' || r == '*' })
	for i, p := range parts {
		parts[i], _, _ = strings.Cut(p, "[")
	}
	if len(parts) == 0 {
		return "", nil
	}
	return parts[0], parts[1:]
}

// unjoined reports whether an order is of what the function did after the place of the wait that was taken out, and of what another thread did later:
// nothing is left in the code but that.
func (t target) unjoined(i *evidence.Interleaving) bool {
	p := t.answer.Unjoined
	if p == nil || i == nil || len(i.Failing) != 2 {
		return false
	}
	after := func(a *evidence.SeenAccess) bool {
		return a.Site != nil && a.Site.Function == p.Function && a.Site.Line > p.Line && same(a.Site, sanitizer.Place{File: p.File, Line: a.Site.Line})
	}
	first, second := &i.Failing[0], &i.Failing[1]
	return first.Thread.Number != second.Thread.Number && after(first) && second.Thread.Start != p.Function
}

func (t target) right(s *evidence.Site) bool { return t.root(s) || t.violates(s) }

func among(s *evidence.Site, places []sanitizer.Place) bool {
	for _, p := range places {
		if same(s, p) {
			return true
		}
	}
	return false
}

// same reports whether a site is at a place. The place's file is relative to the top of the
// sources, the site's as the compiler recorded it.
func same(s *evidence.Site, p sanitizer.Place) bool {
	if s == nil || s.Line != p.Line || s.Line == 0 || s.File == "" {
		return false
	}
	file, want := path.Clean(s.File), path.Clean(p.File)
	return file == want || strings.HasSuffix(file, "/"+want) || strings.HasSuffix(want, "/"+file)
}

// sites are all places in a part of a report.
func sites(part any) (list []*evidence.Site) {
	walk(reflect.ValueOf(part), func(s *evidence.Site) { list = append(list, s) })
	return list
}

var siteType = reflect.TypeFor[evidence.Site]()

func walk(v reflect.Value, found func(*evidence.Site)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), found)
		}
	case reflect.Struct:
		if v.Type() == siteType {
			s := v.Interface().(evidence.Site)
			found(&s)
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), found)
		}
	}
}
