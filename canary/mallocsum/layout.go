package mallocsum

import (
	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// Bounds of the pointers in a type.
const (
	mostPointers = 1024
	mostLayouts  = 1 << 16
	mostElements = 4096 // of an array within a type
	deepest      = 12
)

// layout is where the pointers of a type are.
type layout struct {
	typ      debuginfo.Type
	size     uint64
	kind     debuginfo.Kind
	pointers []typedPointer
	// shapes are the kinds of objects of this type, by their shape; 0: not needed yet.
	shapes map[evidence.MallocShape]int32
}

// typedPointer is a pointer at an offset, and the type that it points to.
type typedPointer struct {
	offset uint64
	to     *layout
}

// layouts are the layouts of types, each made once.
type layouts map[debuginfo.Type]*layout

// of is the layout of a type; nil: objects of it have no size, or there are too many types.
func (l layouts) of(t debuginfo.Type) *layout {
	if t == nil {
		return nil
	}
	if x, known := l[t]; known {
		return x
	}
	if len(l) >= mostLayouts {
		return nil
	}
	x := &layout{typ: t, size: uint64(max(t.Size(), 0)), kind: t.Kind(), shapes: map[evidence.MallocShape]int32{}}
	switch x.kind {
	case debuginfo.KindUnknown, debuginfo.KindVoid, debuginfo.KindFunc:
		x = nil
	default:
		if x.size == 0 {
			x = nil
		}
	}
	l[t] = x
	if x != nil {
		l.addPointers(x, t, 0, 0)
	}
	return x
}

// addPointers adds the pointers of a part of a type. Those in unions are left out: which of its members has a value is not known.
func (l layouts) addPointers(x *layout, t debuginfo.Type, base int64, depth int) {
	if t == nil || depth > deepest || len(x.pointers) >= mostPointers {
		return
	}
	switch t.Kind() {
	case debuginfo.KindPointer:
		const size = 8
		if to := l.of(t.Elem()); to != nil && base >= 0 && uint64(base)+size <= x.size && t.Size() == size {
			x.pointers = append(x.pointers, typedPointer{uint64(base), to})
		}
	case debuginfo.KindStruct:
		if _, _, variants := t.Variant(func(debuginfo.Member) (uint64, error) { return 0, errNoValue }); variants {
			return
		}
		for _, m := range t.Members() {
			if m.BitSize == 0 {
				l.addPointers(x, m.Type, base+m.Offset, depth+1)
			}
		}
	case debuginfo.KindArray:
		elem := t.Elem()
		if elem == nil || elem.Size() <= 0 {
			return
		}
		for i := range min(t.Count(), mostElements) {
			l.addPointers(x, elem, base+i*elem.Size(), depth+1)
			if len(x.pointers) == 0 {
				return // an element has none
			}
		}
	}
}
