package debuginfo

import (
	"bytes"
	"cmp"
	"debug/dwarf"
	"maps"
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
	return i.beginsOf(file, line, most, func(row *lineRow) bool { return row.stmt })
}

// InstructionsOf is AddressesOf, but with the first instruction of each stretch of rows, whether the
// compiler says that a statement begins there or not: in optimised code instructions of a line may
// be executed although the line is not.
func (i *Info) InstructionsOf(file string, line, most int) (list []uint64, err error) {
	list, _, err = i.beginsOf(file, line, most, func(*lineRow) bool { return true })
	return list, err
}

func (i *Info) beginsOf(file string, line, most int, begins func(*lineRow) bool) (list []uint64, known bool, err error) {
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
			list = appendBegins(list, of, uint32(line), most, begins)
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

// appendBegins adds the first row of each stretch of rows of a line that begins says may be it.
func appendBegins(list []uint64, rows []lineRow, line uint32, most int, begins func(*lineRow) bool) []uint64 {
	begun := false
	for i := range rows {
		here := rows[i].line == line
		if here && begins(&rows[i]) && !begun && len(list) < most && !slices.Contains(list, rows[i].pc) {
			list = append(list, rows[i].pc)
		}
		begun = here && (begun || begins(&rows[i]))
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
	calls, err := i.InlinedCalls(accept, most)
	var list []uint64
	for _, c := range calls {
		list = append(list, c.Entry)
	}
	return slices.Compact(list), err
}

// InlinedCall is the code of a call that was inlined.
type InlinedCall struct {
	// Entry is where it is entered. Inside is an address whose inline chain has the call: optimised
	// code may be entered ahead of the addresses that are said to be the call's.
	Entry, Inside uint64
}

// InlinedCalls is InlinedCode with an address inside of each call, in ascending order of the
// entries.
func (i *Info) InlinedCalls(accept func(*Function) bool, most int) ([]InlinedCall, error) {
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
	slices.SortFunc(s.found, func(a, b InlinedCall) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Inside, b.Inside))
	})
	return slices.Compact(s.found), nil
}

// inlineSearch collects where accepted functions were inlined.
type inlineSearch struct {
	accept   func(*Function) bool
	accepted map[dieKey]bool // by abstract instance
	found    []InlinedCall
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
		if ranges, err := e.ranges(); err == nil && len(ranges) > 0 {
			if at := e.entryPC(ranges); at != 0 {
				s.found = append(s.found, InlinedCall{at, insideOf(ranges, at)})
			}
		}
	}
	return w.err
}

// insideOf returns an address in ranges: the given one if it is in them.
func insideOf(ranges [][2]uint64, at uint64) uint64 {
	for _, r := range ranges {
		if at >= r[0] && at < r[1] {
			return at
		}
	}
	return ranges[0][0]
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

// CodeLines returns the lines of a source file that have code, in ascending order; see
// InstructionsOf. It is empty if the program has no code of the file.
func (i *Info) CodeLines(file string) ([]int, error) {
	units, err := i.main.units()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	for _, u := range units {
		if !u.hasCode() {
			continue
		}
		files, err := u.rowsOf(path.Clean(file))
		if err != nil {
			i.problem(err)
		}
		for _, rows := range files {
			for k := range rows {
				if rows[k].line != 0 {
					seen[int(rows[k].line)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// mostSourceFiles bounds the names of source files that are collected.
const mostSourceFiles = 1 << 16

// SourceFiles returns the names of the source files that line tables mention, as the compiler
// recorded them, in ascending order.
func (i *Info) SourceFiles() ([]string, error) {
	seen := map[string]bool{}
	err := i.lineFiles(func(f *lineFile) {
		if len(seen) < mostSourceFiles && f.path != "" {
			seen[f.path] = true
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// lineFiles calls visit with the files of the line tables of units with code. Unreadable units are added to Problems.
func (i *Info) lineFiles(visit func(*lineFile)) error {
	units, err := i.main.units()
	if err != nil {
		return err
	}
	for _, u := range units {
		if !u.hasCode() {
			continue
		}
		table, err := u.lines()
		if err != nil {
			i.problem(err)
		}
		if table == nil {
			continue
		}
		for k := range table.header.files {
			visit(&table.header.files[k])
		}
	}
	return nil
}

// SourceFile is a source file of the program by its full path. MD5 is that of its text, as DWARF 5 has it; nil: it is not known.
type SourceFile struct {
	Path string
	MD5  []byte
}

// SourceFilesNamed returns the files of units with code whose paths end with a name, in any order. Unreadable units are added to
// Problems.
func (i *Info) SourceFilesNamed(base string) ([]SourceFile, error) {
	var list []SourceFile
	err := i.lineFiles(func(f *lineFile) {
		x := SourceFile{f.path, f.md5}
		same := func(y SourceFile) bool { return y.Path == x.Path && bytes.Equal(y.MD5, x.MD5) }
		if path.Base(f.path) == base && len(list) < mostSourceFiles && !slices.ContainsFunc(list, same) {
			list = append(list, x)
		}
	})
	return list, err
}

// Functions calls visit with each function that has code, in the order of the units, until it
// returns false. Unreadable units are added to Problems.
func (i *Info) Functions(visit func(*Function) bool) error {
	units, err := i.main.units()
	if err != nil {
		return err
	}
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
		table, err := full.table()
		if err != nil {
			i.problem(err)
			continue
		}
		seen := map[uint64]bool{} // a function may have several ranges
		for _, r := range table.functions {
			if seen[r.die] {
				continue
			}
			seen[r.die] = true
			f, err := full.scopes.function(r.die)
			if err != nil {
				i.problem(err)
				continue
			}
			if !visit(f) {
				return nil
			}
		}
	}
	return nil
}
