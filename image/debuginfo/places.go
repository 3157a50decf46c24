package debuginfo

import (
	"debug/dwarf"
	"path"
	"slices"
	"strings"
)

// AddressesOf returns the addresses at which the code of a source line begins:
// the first statement of each stretch of rows of that line, in the order of the
// units. The parameter most bounds their number. A file is named by its whole
// path or by the end of it. known reports whether the program has code of the
// file at all. Unreadable parts of units are added to Problems.
func (i *Info) AddressesOf(file string, line, most int) (list []uint64, known bool, err error) {
	units, err := i.main.units()
	if err != nil {
		return nil, false, err
	}
	file = path.Clean(file)
	for _, u := range units {
		if !u.hasCode() {
			continue
		}
		rows, err := u.rowsOf(file)
		if err != nil {
			i.problem(err)
		}
		for _, of := range rows {
			known = known || len(of) > 0
			list = appendBegins(list, of, uint32(line), most)
		}
	}
	return list, known, nil
}

// rowsOf returns the rows of a unit's source files that have a name.
func (u *unit) rowsOf(name string) ([][]lineRow, error) {
	table, err := u.lines()
	if err != nil || table == nil {
		return nil, err
	}
	named := func(p string) bool {
		p = path.Clean(p)
		return p == name || strings.HasSuffix(p, "/"+name)
	}
	if !slices.ContainsFunc(table.header.files, func(f lineFile) bool { return named(f.path) }) {
		return nil, nil // its line program need not be run
	}
	subfiles, err := table.rows()
	var list [][]lineRow
	for i := range subfiles {
		if named(subfiles[i].path) {
			list = append(list, subfiles[i].rows)
		}
	}
	return list, err
}

// appendBegins adds the first statement of each stretch of rows of a line.
func appendBegins(list []uint64, rows []lineRow, line uint32, most int) []uint64 {
	begun := false
	for i := range rows {
		here := rows[i].line == line
		if here && rows[i].stmt && !begun && len(list) < most && !slices.Contains(list, rows[i].pc) {
			list = append(list, rows[i].pc)
		}
		begun = here && (begun || rows[i].stmt)
	}
	return list
}

// maxEntries bounds the DIEs that are read for inlined code.
const maxEntries = 20 << 20

// InlinedCode returns the addresses at which the code of inlined functions
// begins, in ascending order. The parameter most bounds their number. accept is
// called once with each function that is inlined somewhere. An inlined call
// refers to the function's abstract instance (DWARF 5 section 3.3.8).
// Unreadable parts of units are added to Problems.
func (i *Info) InlinedCode(accept func(*Function) bool, most int) ([]uint64, error) {
	units, err := i.main.units()
	if err != nil {
		return nil, err
	}
	s := inlineSearch{accept: accept, accepted: map[dieKey]bool{}, most: most, left: maxEntries}
	for _, u := range units {
		if !u.hasCode() {
			continue
		}
		full, err := u.splitUnit()
		if err != nil {
			i.problem(err)
		}
		if full == nil {
			full = u
		}
		if err := s.searchUnit(full); err != nil {
			i.problem(err)
		}
	}
	slices.Sort(s.found)
	return slices.Compact(s.found), nil
}

// inlineSearch collects where accepted functions were inlined.
type inlineSearch struct {
	accept   func(*Function) bool
	accepted map[dieKey]bool // by abstract instance
	found    []uint64
	most     int
	left     int // entries that may still be read
}

func (s *inlineSearch) searchUnit(u *unit) error {
	w, err := u.walk(u.first)
	if err != nil {
		return err
	}
	var e entry
	for s.left > 0 && len(s.found) < s.most && w.next(&e) {
		s.left--
		if e.abbrev == nil || e.tag() != dwarf.TagInlinedSubroutine {
			continue
		}
		if wanted, err := s.calls(&e); err != nil || !wanted {
			continue // the function of this call is not known
		}
		if ranges, err := e.ranges(); err == nil {
			if at := e.entryPC(ranges); at != 0 {
				s.found = append(s.found, at)
			}
		}
	}
	return w.err
}

// calls reports whether an inlined call is of an accepted function.
func (s *inlineSearch) calls(e *entry) (bool, error) {
	v, ok := e.attr(dwarf.AttrAbstractOrigin)
	if !ok {
		return false, nil
	}
	u, off, err := v.ref()
	if err != nil {
		return false, err
	}
	key := dieKey{u, off}
	wanted, known := s.accepted[key]
	if known {
		return wanted, nil
	}
	abstract, err := u.entryAt(off)
	if err != nil {
		return false, err
	}
	f, err := abstract.function()
	if err != nil {
		return false, err
	}
	wanted = s.accept(f)
	s.accepted[key] = wanted
	return wanted, nil
}
