package value

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Iterator is an iterator of a container of the C++ standard library.
type Iterator struct {
	// Kind is that of its containers. An iterator of a string is one of a vector.
	Kind evidence.ContainerKind
	// Position is the address of the element, or of the node that has it; 0 is the end of a hash table.
	Position evidence.Addr
	// Elem is the type of the elements; nil: it is not known.
	Elem debuginfo.Type
}

// IteratorAt reads the object of type t at an address; false: the type is no iterator's.
func IteratorAt(m image.Memory, addr evidence.Addr, t debuginfo.Type) (Iterator, bool, error) {
	return iterator(object{source: memorySource{m, addr}}, t, 0)
}

// IteratorOf reads a variable of a frame, which may be in a register; false: its type is no iterator's.
func IteratorOf(f *Frame, v debuginfo.Variable) (Iterator, bool, error) {
	if v.Type == nil || v.Type.Kind() != debuginfo.KindStruct || v.Type.Size() > maxIterator {
		return Iterator{}, false, nil
	}
	loc, err := Lives(f, v)
	if err != nil {
		return Iterator{}, true, err
	}
	o, err := loc.object(f, v.Type.Size())
	if err != nil {
		return Iterator{}, true, err
	}
	return iterator(o, v.Type, 0)
}

// maxIterator is the size of the largest iterator: four pointers.
const maxIterator = 32

// iterator reads an iterator by the names of its members.
func iterator(o object, t debuginfo.Type, depth int) (Iterator, bool, error) {
	const deepest = 3
	if t == nil || t.Kind() != debuginfo.KindStruct || t.Size() < 8 || t.Size() > maxIterator || depth > deepest {
		return Iterator{}, false, nil
	}
	members := t.Members()
	if len(members) == 0 || len(members) > 4 {
		return Iterator{}, false, nil
	}
	m := members[0]
	if m.Base && len(members) == 1 { // _Node_iterator has all in its base
		return iterator(o.atOffset(m.Offset), m.Type, depth+1)
	}
	for i := range members { // the base class std::iterator has no members
		if !members[i].Base {
			m = members[i]
			break
		}
	}
	kind, elem := iteratorKind(members, &m)
	switch kind {
	case evidence.ContainerList, evidence.ContainerTree:
		elem = typeParameter(t, 0)
	case evidence.ContainerHash:
		if elem == nil { // libc++: the parameter is the pointer to the node
			if pointer := typeParameter(t, 0); pointer != nil {
				elem = pointer.Elem()
			}
		}
		elem = typeParameter(elem, 0)
	}
	if kind == "" {
		if (m.Name == "__i_" || m.Name == "__i") && m.Type != nil && aggregate(m.Type) { // libc++'s __map_iterator
			return iterator(o.atOffset(m.Offset), m.Type, depth+1)
		}
		return Iterator{}, false, nil
	}
	p := part{m.Offset, m.Type}
	if hasMember(members, "__m_iter_", "") {
		p, _ = find(t, "__ptr_", isPointer)
	}
	if p.typ == nil {
		return Iterator{}, false, nil
	}
	v, err := o.word(p)
	return Iterator{Kind: kind, Position: evidence.Addr(v), Elem: elem}, true, err
}

// typeParameter is a type that a template was instantiated with; nil: there is none.
func typeParameter(t debuginfo.Type, n int) debuginfo.Type {
	g, ok := t.(interface{ TypeParameters() []debuginfo.Type })
	if !ok {
		return nil
	}
	list := g.TypeParameters()
	if n >= len(list) {
		return nil
	}
	return list[n]
}

// iteratorKind judges an iterator by its first member m; empty: it is none. The type is that of the element or, of a
// hash table, of the node.
func iteratorKind(members []debuginfo.Member, m *debuginfo.Member) (evidence.ContainerKind, debuginfo.Type) {
	if m.Type == nil || !isPointer(m.Type) || m.Type.Elem() == nil {
		return "", nil
	}
	elem := m.Type.Elem()
	links := func(name string) bool { // a typedef may hide the name of the node's type
		_, ok := find(elem, name, nil)
		return ok
	}
	switch m.Name {
	case "_M_current", "__i", "__i_":
		return evidence.ContainerVector, elem
	case "_M_cur":
		switch {
		case hasMember(members, "_M_first", "") && hasMember(members, "_M_last", "") && hasMember(members, "_M_node", ""):
			return evidence.ContainerDeque, elem
		case links("_M_nxt"):
			return evidence.ContainerHash, elem
		}
	case "_M_node":
		switch {
		case links("_M_prev"):
			return evidence.ContainerList, nil
		case links("_M_left"):
			return evidence.ContainerTree, nil
		}
	case "__m_iter_":
		if elem.Kind() == debuginfo.KindPointer {
			return evidence.ContainerDeque, elem.Elem()
		}
	case "__ptr_":
		switch {
		case links("__prev_"):
			return evidence.ContainerList, nil
		case links("__left_"):
			return evidence.ContainerTree, nil
		}
	case "__node_":
		if links("__next_") {
			return evidence.ContainerHash, nil
		}
	}
	return "", nil
}

// IteratorPlace is where an iterator is in a container.
type IteratorPlace uint8

// The places.
const (
	PlaceUnknown   IteratorPlace = iota
	PlaceAtElement               // it has an element
	PlaceAtEnd                   // it is end()
	PlaceElsewhere               // it is neither: past the end, of another container, or stale
)

// Place says where an iterator is in the container. It is not known for iterators of other kinds of container, and
// in containers of too many nodes.
func (c *Container) Place(i Iterator) IteratorPlace {
	kind := c.Kind
	if kind == evidence.ContainerString {
		kind = evidence.ContainerVector
	}
	if i.Kind != kind || i.Elem != nil && c.Elem != nil && !sameElement(i.Elem, c.Elem) {
		return PlaceUnknown
	}
	switch c.Kind {
	case evidence.ContainerVector, evidence.ContainerString:
		return placeInSpan(i.Position, span{c.Begin, c.End}, c.Elem)
	case evidence.ContainerDeque:
		return c.placeInBlocks(i.Position)
	}
	switch {
	case i.Position == c.Sentinel:
		return PlaceAtEnd
	case c.nodes == nil:
		return PlaceUnknown
	case c.nodes[i.Position]:
		return PlaceAtElement
	}
	return PlaceElsewhere
}

// sameElement compares types of elements, which an iterator to constants has as constants.
func sameElement(x, y debuginfo.Type) bool {
	plain := func(t debuginfo.Type) string { return strings.TrimPrefix(t.Name(), "const ") }
	return x.Size() == y.Size() && plain(x) == plain(y)
}

func placeInSpan(at evidence.Addr, s span, elem debuginfo.Type) IteratorPlace {
	switch {
	case at == s.end:
		return PlaceAtEnd
	case at >= s.begin && at < s.end && (at-s.begin)%evidence.Addr(elem.Size()) == 0:
		return PlaceAtElement
	}
	return PlaceElsewhere
}

func (c *Container) placeInBlocks(at evidence.Addr) IteratorPlace {
	if at == c.End {
		return PlaceAtEnd
	}
	for _, b := range c.blocks {
		if at >= b.begin && at < b.end {
			return PlaceAtElement
		}
	}
	return PlaceElsewhere
}

// At is the address of the element with an index of a vector or string, whether it has it or not; false for other
// containers.
func (c *Container) At(index int64) (evidence.Addr, bool) {
	if c.Kind != evidence.ContainerVector && c.Kind != evidence.ContainerString {
		return 0, false
	}
	return c.Begin + evidence.Addr(index*c.Elem.Size()), true
}
