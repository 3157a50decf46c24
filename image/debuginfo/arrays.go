package debuginfo

import "debug/dwarf"

// maxDimensions bounds the dimensions of an array.
const maxDimensions = 32

// dimensions returns the number of elements of each of an array's
// dimensions; -1 where it is not known.
func (t *dieType) dimensions() []int64 {
	var list []int64
	err := t.die.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagSubrangeType, dwarf.TagEnumerationType, dwarf.TagGenericSubrange:
			list = append(list, child.elements())
		}
		return len(list) < maxDimensions
	})
	if err != nil {
		t.info.problem(err)
	}
	if len(list) == 0 {
		list = []int64{-1}
	}
	return list
}

// elements returns a subrange's number of elements. A bound given by an
// expression or a variable is not known here.
func (e *entry) elements() int64 {
	if v, ok := e.attr(dwarf.AttrCount); ok {
		if !v.isConstant() || v.number > 1<<48 {
			return -1
		}
		return int64(v.number)
	}
	upper, ok := e.attr(dwarf.AttrUpperBound)
	if !ok || !upper.isConstant() {
		return -1
	}
	lower := int64(0)
	if v, ok := e.attr(dwarf.AttrLowerBound); ok {
		if !v.isConstant() {
			return -1
		}
		lower = v.signed()
	}
	high := upper.bound()
	// an upper bound of -1 is how old compilers wrote an array of no elements
	if high < lower-1 || high-lower >= 1<<48 {
		return -1
	}
	return high - lower + 1
}

// bound reads an upper bound. It is unsigned, except for the -1 of an empty
// array, which may have any width.
func (v value) bound() int64 {
	if v.form == formData4 && v.number == 1<<32-1 || v.form == formData8 && v.number == 1<<64-1 {
		return -1
	}
	return int64(v.number)
}

// Count implements Type.
func (t *dieType) Count() int64 {
	core := t.bare()
	if core == nil || core.die.tag() != dwarf.TagArrayType {
		return -1
	}
	dims := core.dimensions()
	if core.key.dimension >= len(dims) {
		return -1
	}
	return dims[core.key.dimension]
}

// element returns an array's element, which for all but the last dimension
// is an array again.
func (t *dieType) element() *dieType {
	if t.key.dimension+1 < len(t.dimensions()) {
		key := t.key
		key.dimension++
		return t.info.dieTypeOf(key)
	}
	return t.next()
}
