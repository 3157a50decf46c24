package staticscan

import "diagnose/evidence"

// Outside is an access to memory that lies outside of the array that the code means.
type Outside struct {
	// Array names it; it is at From and has Size bytes, Element those of one element.
	Array         string
	From          evidence.Addr
	Size, Element uint64 // Element is 0 where it is not known
	// Addr is what was accessed, at Site; Writes: it was written.
	Addr   evidence.Addr
	Site   evidence.Site
	Writes bool
	// Index blames the index: its Cell, Steps and Value; without Role a loop moved a
	// pointer on.
	Index Blame
}

// Number is that of the element that the memory would be in; ok is false if the elements'
// size is not known.
func (o *Outside) Number() (n int64, ok bool) {
	if o.Element == 0 {
		return 0, false
	}
	d, size := int64(o.Addr-o.From), int64(o.Element)
	if n = d / size; d%size < 0 {
		n--
	}
	return n, true
}

// outside judges an access of size bytes at an address that the code has as a formula,
// made by the instruction at pos; nil: it lies in what the code means, or that is no array
// whose size is known, or not one index led there.
func (t *originSearch) outside(s *backwardSlice, pos int, address *node, addr evidence.Addr, size int) *Outside {
	if t.index || address == nil {
		return nil
	}
	terms, offset := linear(address)
	static := s.isStatic(uint64(offset))
	index, moved := s.indexTerm(terms, static)
	if index == nil {
		return nil
	}
	st := &storeTrail{originSearch: &originSearch{in: t.in, processView: t.processView, hops: t.hops}}
	if static { // constants, too, which no store means
		st.meantData(s, evidence.Addr(offset), size, true)
		st.meantArray(s, evidence.Addr(offset), terms)
	} else if st.meantThroughPointer(s, terms, offset, size); st.From == nil {
		st.meantBy(s, address, size, false)
	}
	element := uint64(index.factor)
	if st.From == nil || st.MeantSize == 0 || st.MeantSize%element != 0 || st.MeantSize < 2*element {
		return nil
	}
	if base, known := baseOf(index, terms, offset); !moved && (!known || base < *st.From || base-*st.From >= evidence.Addr(element)) {
		return nil // compilers put a constant that is added to an index into the address
	}
	end := *st.From + evidence.Addr(st.MeantSize)
	if addr >= *st.From && addr < end || moved && addr < end {
		return nil // what moves down may have begun behind an array's end
	}
	o := &Outside{Array: st.Meant, From: *st.From, Size: st.MeantSize, Addr: addr}
	o.Site = t.site(evidence.Addr(s.a.flow.insts[pos].PC))
	if moved {
		return o
	}
	o.Element = element
	blame := &originSearch{in: t.in, processView: t.processView, hops: t.hops, named: t.named, index: true}
	blame.place(s)
	blame.describeValue(s, index.node, RoleIndex)
	blame.walkBack(s, index.node)
	o.Index = blame.blame
	return o
}

// meantThroughPointer is for an array in what a pointer leads to, wherever that lies.
func (t *storeTrail) meantThroughPointer(s *backwardSlice, terms []term, offset int64, size int) {
	i := s.pointerTerm(terms)
	if i < 0 || len(terms) < 2 {
		return
	}
	v, known := terms[i].node.best()
	e, named := s.describe(terms[i].node, 0)
	if known && named {
		t.meantMember(e, evidence.Addr(v), offset, size)
	}
}

// baseOf is an address without its index.
func baseOf(index *term, terms []term, offset int64) (evidence.Addr, bool) {
	base := uint64(offset)
	for i := range terms {
		if &terms[i] == index {
			continue
		}
		v, known := terms[i].node.best()
		if !known {
			return 0, false
		}
		base += v * uint64(terms[i].factor)
	}
	return evidence.Addr(base), true
}

// indexTerm is the one summand of an address that is an index, or, where moved says so,
// the pointer that a loop moved on; nil: there is none, or several.
func (s *backwardSlice) indexTerm(terms []term, static bool) (index *term, moved bool) {
	pointer := -1
	if len(terms) > 1 {
		pointer = s.pointerTerm(terms)
	}
	based := static || pointer >= 0
	for i := range terms {
		if _, frame := s.frameAddress(terms[i]); frame || i == pointer {
			based = true
			continue
		}
		if index != nil || terms[i].factor <= 0 {
			return nil, false
		}
		index = &terms[i]
	}
	if index == nil || based {
		return index, false
	}
	if n := index.node; len(terms) > 1 || index.factor != 1 || n.op != opCopy || !n.advanced {
		return nil, false
	}
	return index, true
}
