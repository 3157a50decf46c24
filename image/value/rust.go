package value

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// rustFormat chooses the format for a type of Rust's standard library; nil
// for all others.
func rustFormat(name string, members []debuginfo.Member) libraryFormat {
	name = strings.TrimPrefix(name, "struct ")
	switch {
	case hasMember(members, "data_ptr", "") && hasMember(members, "length", ""):
		if name == "&str" || name == "&mut str" {
			return (*formatter).rustStr
		}
		return (*formatter).rustSlice
	case hasMember(members, "vec", "Vec<u8") && isNamed(name, "String"):
		return (*formatter).rustString
	case hasMember(members, "buf", "RawVec<") && hasMember(members, "len", ""):
		return (*formatter).rustVec
	}
	return nil
}

func isNamed(name, last string) bool { return name == last || strings.HasSuffix(name, "::"+last) }

func (w *formatter) rustStr(o object, t debuginfo.Type, _ int) (evidence.Value, bool) {
	values, _, ok, err := w.words(o, t, "data_ptr", "length")
	if err != nil {
		return failed(err)
	}
	if !ok {
		return evidence.Value{}, false
	}
	if values[1] > maxLibraryString {
		return invalid("&str", "length %d, data at %#x", values[1], values[0])
	}
	return w.counted(evidence.Addr(values[0]), values[1]), true
}

func (w *formatter) rustSlice(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	values, parts, ok, err := w.words(o, t, "data_ptr", "length")
	if err != nil {
		return failed(err)
	}
	if !ok || !isPointer(parts[0].typ) || parts[0].typ.Elem() == nil {
		return evidence.Value{}, false
	}
	if values[1] > maxLibraryString {
		return invalid("slice", "length %d, data at %#x", values[1], values[0])
	}
	title := fmt.Sprintf("slice of length %d", values[1])
	return w.sequence(title, evidence.Addr(values[0]), parts[0].typ.Elem(), values[1], depth), true
}

// rustParts reads pointer, capacity and length of a Vec. The pointer is
// wrapped in Unique and NonNull, the capacity, since Rust 1.76, in a type that
// leaves niches.
func (w *formatter) rustParts(o object, t debuginfo.Type) (pointer evidence.Addr, length uint64, elem debuginfo.Type, v evidence.Value, ok bool) {
	p, found := find(t, "pointer", isPointer)
	size, sized := find(t, "len", isWord)
	if !found || !sized {
		return 0, 0, nil, v, false
	}
	at, err := o.word(p)
	if err == nil {
		length, err = o.word(size)
	}
	if err != nil {
		return 0, 0, nil, missing(err), true
	}
	if capacity, known := rustCapacity(o, t); length > maxLibraryString || known && length > capacity {
		v, _ = invalid("Vec", "length %d, capacity %d, data at %#x", length, capacity, at)
	}
	return evidence.Addr(at), length, p.typ.Elem(), v, true
}

// rustCapacity returns the allocated capacity, if the layout shows it.
func rustCapacity(o object, t debuginfo.Type) (uint64, bool) {
	p, ok := find(t, "cap", nil)
	if !ok {
		return 0, false
	}
	if aggregate(p.typ) {
		inner, ok := find(p.typ, "__0", isWord)
		if !ok {
			return 0, false
		}
		p = part{p.offset + inner.offset, inner.typ}
	}
	v, err := o.word(p)
	return v, err == nil
}

func (w *formatter) rustString(o object, t debuginfo.Type, _ int) (evidence.Value, bool) {
	pointer, length, _, v, ok := w.rustParts(o, t)
	if !ok || v.Unavailable != "" {
		return v, ok
	}
	return w.counted(pointer, length), true
}

// rustVec shows a Vec's elements. Since Rust 1.80 its pointer points to bytes,
// and only the marker member next to it has the element's type.
func (w *formatter) rustVec(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	pointer, length, elem, v, ok := w.rustParts(o, t)
	if !ok || v.Unavailable != "" {
		return v, ok
	}
	title := fmt.Sprintf("Vec of length %d", length)
	if _, erased := find(t, "inner", aggregate); erased {
		if elem = rustElement(t); elem == nil {
			return evidence.Value{Text: fmt.Sprintf("%s at %v", title, pointer), Elided: int(length)}, true
		}
	}
	if elem == nil {
		return evidence.Value{}, false
	}
	return w.sequence(title, pointer, elem, length, depth), true
}

// parameterized is a type that knows its type parameters.
type parameterized interface {
	TypeParameters() []debuginfo.Type
}

// rustElement returns a Vec's first type parameter.
func rustElement(t debuginfo.Type) debuginfo.Type {
	p, ok := t.(parameterized)
	if !ok {
		return nil
	}
	if list := p.TypeParameters(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// variant formats the active variant of a Rust enum: "Some(5)".
func (w *formatter) variant(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	var failure error
	name, members, ok := t.Variant(func(m debuginfo.Member) (uint64, error) {
		v, err := w.discriminant(o, m)
		if err != nil {
			failure = err
		}
		return v, err
	})
	if !ok {
		return evidence.Value{}, false
	}
	if failure != nil {
		return failed(failure)
	}
	if name == "" {
		return evidence.NoValue("no variant has the discriminant that it holds"), true
	}
	if len(members) == 0 {
		return evidence.Value{Text: name}, true
	}
	if depth >= w.opts.Depth {
		return evidence.Value{Text: name + "(...)", Elided: len(members)}, true
	}
	v := w.members(o, members, depth)
	if members[0].Name != "__0" {
		v.Text = name + " " + v.Text
		return v, true
	}
	v.Text = name + v.Text
	return v, true
}

func (w *formatter) discriminant(o object, m debuginfo.Member) (uint64, error) {
	if m.Type == nil || m.Type.Size() <= 0 || m.Type.Size() > 8 {
		return 0, unavailable("the enum's discriminant has no size")
	}
	data, err := o.atOffset(m.Offset).read(m.Type.Size())
	if err != nil {
		return 0, err
	}
	return unsignedOf(data), nil
}
