package debuginfo

import (
	"debug/dwarf"
	"fmt"
)

// maxHops bounds chains of references: origins, specifications, qualifiers.
const maxHops = 64

// entry is one DIE. A zero abbrev is the end of a list of children.
type entry struct {
	unit   *unit
	off    uint64 // in the unit's section
	abbrev *abbrev
	attrs  int // where the values begin
	next   int // where the next entry begins, the first child if there are any
}

func (e *entry) tag() dwarf.Tag { return e.abbrev.tag }

// walker reads a unit's DIEs in the order of the section.
type walker struct {
	unit  *unit
	r     reader
	table *abbrevTable
	err   error
}

func (u *unit) walk(from uint64) (*walker, error) {
	if u.broken != nil {
		return nil, u.broken
	}
	data, err := u.data()
	if err != nil {
		return nil, err
	}
	table, err := u.abbrevs()
	if err != nil {
		return nil, err
	}
	if from < u.first || from >= u.end {
		return nil, u.src.bad(u.section, from, "entry is outside its unit")
	}
	return &walker{unit: u, r: reader{data: data, pos: int(from)}, table: table}, nil
}

// next reads the next entry and moves past its values. It returns false at the
// unit's end or at an error, which is in err.
func (w *walker) next(e *entry) bool {
	if w.r.pos >= len(w.r.data) || w.err != nil {
		return false
	}
	e.unit = w.unit
	e.off = uint64(w.r.pos)
	code := w.r.uleb()
	if code == 0 {
		e.abbrev, e.next = nil, w.r.pos
		return !w.failed(e)
	}
	e.abbrev = w.table.abbrevOf(code)
	if e.abbrev == nil {
		w.err = w.unit.src.bad(w.unit.section, e.off, fmt.Sprintf("entry has unknown abbreviation %d", code))
		return false
	}
	e.attrs = w.r.pos
	if e.abbrev.size >= 0 {
		w.r.skip(uint64(e.abbrev.size))
	} else {
		w.skipFields(e.abbrev.fields)
	}
	e.next = w.r.pos
	return !w.failed(e)
}

func (w *walker) skipFields(fields []field) {
	for i := range fields {
		if n := fields[i].size; n >= 0 {
			w.r.skip(uint64(n))
		} else {
			skipForm(&w.r, fields[i].form, w.unit.wide, w.unit.version)
		}
	}
}

func (w *walker) failed(e *entry) bool {
	if w.r.bad {
		w.err = w.unit.src.bad(w.unit.section, e.off, "entry is malformed or cut off")
	}
	return w.err != nil
}

// skipChildren moves past the children of the entry that next returned.
func (w *walker) skipChildren(e *entry) bool {
	if !e.abbrev.children {
		return true
	}
	if v, ok := e.attr(dwarf.AttrSibling); ok {
		_, off, err := v.ref()
		if err != nil || off <= e.off || off < uint64(w.r.pos) {
			w.err = w.unit.src.bad(w.unit.section, e.off, "sibling does not lie ahead")
			return false
		}
		w.r.pos = int(off)
		return true
	}
	var child entry
	for depth := 1; depth > 0; {
		if !w.next(&child) {
			return false
		}
		switch {
		case child.abbrev == nil:
			depth--
		case child.abbrev.children:
			depth++
		}
	}
	return true
}

// entryAt reads the DIE at an offset of the unit's section.
func (u *unit) entryAt(off uint64) (entry, error) {
	var e entry
	w, err := u.walk(off)
	if err != nil {
		return e, err
	}
	if !w.next(&e) || e.abbrev == nil {
		if w.err == nil {
			w.err = u.src.bad(u.section, off, "no entry where one is referred to")
		}
		return entry{}, w.err
	}
	return e, nil
}

// attr returns one of the entry's own attributes.
func (e *entry) attr(attr dwarf.Attr) (value, bool) {
	fields := e.abbrev.fields
	for i := range fields {
		if fields[i].attr == attr {
			return e.field(i), true
		}
	}
	return value{}, false
}

func (e *entry) field(n int) value {
	data, err := e.unit.data()
	if err != nil {
		return value{}
	}
	r := reader{data: data, pos: e.attrs}
	fields := e.abbrev.fields
	for i := range n {
		if size := fields[i].size; size >= 0 {
			r.skip(uint64(size))
		} else {
			skipForm(&r, fields[i].form, e.unit.wide, e.unit.version)
		}
	}
	return readForm(&r, e.unit, fields[n].form, fields[n].implicit)
}

// children calls f for each child until it returns false.
func (e *entry) children(f func(child *entry) bool) error {
	if !e.abbrev.children {
		return nil
	}
	w, err := e.unit.walk(uint64(e.next))
	if err != nil {
		return err
	}
	var child entry
	for w.next(&child) && child.abbrev != nil {
		kept := child
		if !f(&kept) {
			return nil
		}
		if !w.skipChildren(&child) {
			break
		}
	}
	return w.err
}

// origin follows abstract origin, specification or extension by one step.
func (e *entry) origin() (entry, bool, error) {
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if v, ok := e.attr(attr); ok {
			u, off, err := v.ref()
			if err != nil {
				return entry{}, false, err
			}
			next, err := u.entryAt(off)
			return next, err == nil, err
		}
	}
	return entry{}, false, nil
}

// inherited returns an attribute of the entry, or of the entries that it
// instantiates or completes (DWARF 5 sections 2.13.2 and 3.3.8.2).
func (e *entry) inherited(attr dwarf.Attr) (value, bool, error) {
	at := *e
	for range maxHops {
		if v, ok := at.attr(attr); ok {
			return v, true, nil
		}
		next, ok, err := at.origin()
		if !ok {
			return value{}, false, err
		}
		at = next
	}
	return value{}, false, e.unit.src.bad(e.unit.section, e.off, "endless chain of origins")
}

func (e *entry) flag(attr dwarf.Attr) bool {
	v, ok := e.attr(attr)
	return ok && v.number != 0
}

// name returns DW_AT_name, inherited; "" when there is none.
func (e *entry) name() (string, error) {
	v, ok, err := e.inherited(dwarf.AttrName)
	if !ok {
		return "", err
	}
	return v.str()
}
