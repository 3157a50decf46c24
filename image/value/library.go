package value

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// maxLibraryString is more than any string of a real program.
const maxLibraryString = 1 << 40

// library formats types of the C++ and Rust standard libraries by their
// meaning: libstdc++'s layout with the C++11 ABI, and Rust's. The types are
// recognised by their members, because a typedef may hide the name.
func (w *formatter) library(o object, t debuginfo.Type, members []debuginfo.Member, depth int) (evidence.Value, bool) {
	if len(members) == 0 || len(members) > 8 {
		return evidence.Value{}, false
	}
	if f := cxxFormat(members); f != nil {
		return f(w, o, t, depth)
	}
	if f := rustFormat(t.Name(), members); f != nil {
		return f(w, o, t, depth)
	}
	return evidence.Value{}, false
}

// libraryFormat formats a library type; ok is false when the layout is not the
// expected one; then the members are shown instead.
type libraryFormat func(w *formatter, o object, t debuginfo.Type, depth int) (v evidence.Value, ok bool)

// part is a member found within a structure.
type part struct {
	offset int64
	typ    debuginfo.Type
}

// find looks for a member by name in t, its bases and its members, the
// nearest level first. accept chooses among equal names; nil takes any.
func find(t debuginfo.Type, name string, accept func(debuginfo.Type) bool) (part, bool) {
	return search(t, func(m debuginfo.Member) bool {
		return m.Name == name && (accept == nil || accept(m.Type))
	})
}

// search is find with any condition on the member.
func search(t debuginfo.Type, wanted func(debuginfo.Member) bool) (part, bool) {
	const maxParts, maxLevels = 200, 8
	level, seen := []part{{0, t}}, 0
	for range maxLevels {
		var next []part
		for _, p := range level {
			if !aggregate(p.typ) {
				continue
			}
			for _, m := range p.typ.Members() {
				if seen++; seen > maxParts || m.Type == nil {
					return part{}, false
				}
				inner := part{p.offset + m.Offset, m.Type}
				if wanted(m) {
					return inner, true
				}
				next = append(next, inner)
			}
		}
		level = next
	}
	return part{}, false
}

func isPointer(t debuginfo.Type) bool { return t.Kind() == debuginfo.KindPointer && t.Size() == 8 }

func isWord(t debuginfo.Type) bool {
	return t.Size() > 0 && t.Size() <= 8 && !aggregate(t) && t.Kind() != debuginfo.KindArray
}

// word reads a member as an unsigned number.
func (o object) word(p part) (uint64, error) {
	data, err := o.atOffset(p.offset).read(p.typ.Size())
	if err != nil {
		return 0, err
	}
	return unsignedOf(data), nil
}

// words finds members by name and reads them; ok is false when the layout
// lacks one, err when one could not be read.
func (w *formatter) words(o object, t debuginfo.Type, names ...string) (values []uint64, parts []part, ok bool, err error) {
	for _, name := range names {
		p, found := find(t, name, isWord)
		if !found {
			return nil, nil, false, nil
		}
		v, err := o.word(p)
		if err != nil {
			return nil, nil, true, err
		}
		values, parts = append(values, v), append(parts, p)
	}
	return values, parts, true, nil
}

func failed(err error) (evidence.Value, bool) {
	return missing(err), true
}

// invalid is an object that is no valid what, which the details show.
func invalid(what, details string, args ...any) (evidence.Value, bool) {
	return evidence.NoValueBecause("not a valid "+what, fmt.Sprintf(details, args...)), true
}

// sequence formats the elements of a container under its title.
func (w *formatter) sequence(title string, base evidence.Addr, elem debuginfo.Type, count uint64, depth int) evidence.Value {
	if count == 0 {
		return evidence.Value{Text: title + " {}"}
	}
	v := w.array(object{source: memorySource{w.memory, base}}, elem, int64(count), depth)
	if v.Unavailable == "" {
		v.Text = title + " " + v.Text
	}
	return v
}

// hasMember returns the member with the name whose type's name holds within.
func hasMember(members []debuginfo.Member, name, within string) bool {
	for _, m := range members {
		if m.Name == name && m.Type != nil && strings.Contains(m.Type.Name(), within) {
			return true
		}
	}
	return false
}

// hasBase reports a base class whose name holds within.
func hasBase(members []debuginfo.Member, within string) bool {
	for _, m := range members {
		if m.Base && m.Type != nil && strings.Contains(m.Type.Name(), within) {
			return true
		}
	}
	return false
}
