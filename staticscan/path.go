package staticscan

import (
	"fmt"
	"strings"

	"diagnose/image/debuginfo"
)

// part is a piece of an object: what to append to the object's name, the
// piece's type, and where it is.
type part struct {
	path string
	typ  debuginfo.Type
	// offset and size are the piece's place in the object; for an element of
	// an array with unknown index those of the array.
	offset, size int64
	array        debuginfo.Type // that array
	// exact: the path names one place, with no rest that has no name. choice: the place is in several members of a union, and the path
	// names one of them.
	exact, choice bool
}

// maxNesting bounds the walk into types that contain themselves, which only
// broken debug information has.
const maxNesting = 32

// walk finds the innermost piece of t that holds size bytes at offset. When
// varies is set the index into every array on the way is unknown.
func walk(t debuginfo.Type, offset, size int64, varies bool) part {
	p := part{typ: t, exact: true}
	if t != nil {
		p.size = t.Size()
	}
	rest, indexed := offset, false
	for depth := 0; t != nil && depth < maxNesting; depth++ {
		var step string
		var inner int64
		next := debuginfo.Type(nil)
		switch t.Kind() {
		case debuginfo.KindStruct, debuginfo.KindUnion:
			if rest == 0 && size == t.Size() && len(t.Members()) != 1 {
				return p
			}
			m, ok := memberAt(t, rest, size)
			if !ok {
				return p.unnamed(rest)
			}
			next, inner = m.Type, rest-m.Offset
			p.choice = p.choice || t.Kind() == debuginfo.KindUnion && len(t.Members()) > 1
			if !m.Base && m.Name != "" {
				step = "." + m.Name
			}
		case debuginfo.KindArray:
			next, inner, step = element(t, rest, size, varies)
			if next == nil {
				return p.unnamed(rest)
			}
			if varies && !indexed {
				indexed = true
				p.offset, p.size, p.array = offset-rest, t.Size(), t
			}
		default:
			return p.unnamed(rest)
		}
		p.path += step
		p.typ = next
		if !indexed {
			p.offset, p.size = offset-inner, next.Size()
		}
		t, rest = next, inner
	}
	return p
}

// unnamed ends a path at a place that has no name of its own.
func (p part) unnamed(rest int64) part {
	if rest != 0 {
		p.path += fmt.Sprintf("+%#x", rest)
		p.exact = false
	}
	return p
}

// memberAt prefers a member that holds the whole access, then one that holds
// its first byte: compilers join accesses to neighbours.
func memberAt(t debuginfo.Type, offset, size int64) (debuginfo.Member, bool) {
	for _, width := range []int64{max(size, 1), 1} {
		for _, m := range t.Members() {
			if m.Type != nil && m.Offset <= offset && offset+width <= m.Offset+m.Type.Size() {
				return m, true
			}
		}
	}
	return debuginfo.Member{}, false
}

// element is one step into an array; nil when the access is wider than an
// element, as in a block copy, or when the index is out of bounds.
func element(t debuginfo.Type, offset, size int64, varies bool) (next debuginfo.Type, inner int64, step string) {
	elem := t.Elem()
	if elem == nil || elem.Size() <= 0 || size > elem.Size() {
		return nil, 0, ""
	}
	index := offset / elem.Size()
	inner = offset % elem.Size()
	if varies {
		if inner < 0 {
			inner += elem.Size()
		}
		return elem, inner, "[...]"
	}
	if offset < 0 {
		return nil, 0, ""
	}
	return elem, inner, fmt.Sprintf("[%d]", index)
}

// through names what a pointer's target holds at an offset: "p->x", "*p",
// "p[3]". ok is false when t is no pointer to a known type.
func through(text string, t debuginfo.Type, offset, size int64, varies bool) (name string, p part, ok bool) {
	if t == nil || t.Kind() != debuginfo.KindPointer || t.Elem() == nil {
		return "", part{}, false
	}
	if t.Elem().Size() <= 0 {
		// A type that is only declared: its start is all there is to name.
		return "*" + text, part{typ: t.Elem()}, offset == 0 && !varies
	}
	target := t.Elem()
	index, inside := "", offset
	switch {
	case varies:
		inside = ((offset % target.Size()) + target.Size()) % target.Size()
		index = "[...]"
	case offset < 0 || offset >= target.Size():
		inside = ((offset % target.Size()) + target.Size()) % target.Size()
		index = fmt.Sprintf("[%d]", (offset-inside)/target.Size())
	}
	p = walk(target, inside, size, varies)
	return dereference(text, index, p.path, t.Reference()), p, true
}

// dereference writes the access of path in the target of a pointer.
func dereference(text, index, path string, reference bool) string {
	switch {
	case reference && index == "":
		return text + path
	case index != "":
		return grouped(text) + index + path
	case strings.HasPrefix(path, "."):
		return grouped(text) + "->" + path[1:]
	case path == "":
		return "*" + text
	}
	return "(*" + text + ")" + path
}

// grouped puts an expression into parentheses where a member operator would
// bind tighter.
func grouped(text string) string {
	if strings.HasPrefix(text, "*") || strings.HasPrefix(text, "&") || strings.ContainsAny(text, " ") {
		return "(" + text + ")"
	}
	return text
}

func typeName(t debuginfo.Type) string {
	if t == nil {
		return ""
	}
	return t.Name()
}
