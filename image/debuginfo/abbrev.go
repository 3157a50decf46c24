package debuginfo

import "debug/dwarf"

// field is one attribute of an abbreviation.
type field struct {
	attr     dwarf.Attr
	form     form
	size     int8 // -1: formSize does not tell
	implicit int64
}

// abbrev is one declaration of .debug_abbrev (DWARF 5 section 7.5.3), with the
// sizes that let a walk skip a DIE without reading its values.
type abbrev struct {
	code     uint64
	tag      dwarf.Tag
	children bool
	fields   []field
	// size is the total size of all values, -1 if it varies.
	size int
	// notable DIEs are entered into the unit's table.
	notable bool
}

type abbrevTable struct {
	dense  []abbrev // code n at n-1, as every producer numbers them
	sparse map[uint64]*abbrev
}

func (t *abbrevTable) abbrevOf(code uint64) *abbrev {
	if code-1 < uint64(len(t.dense)) {
		return &t.dense[code-1]
	}
	return t.sparse[code]
}

// abbrevsAt returns the table at an offset, for units of one format.
func (s *source) abbrevsAt(offset uint64, wide bool, version uint16) (*abbrevTable, error) {
	key := offset<<5 | uint64(version)<<1
	if wide {
		key |= 1
	}
	s.mu.Lock()
	table := s.abbrevs[key]
	s.mu.Unlock()
	if table != nil {
		return table, nil
	}
	r, err := s.reader(secAbbrev, offset, "abbreviation table")
	if err != nil {
		return nil, err
	}
	table = &abbrevTable{}
	for {
		a, ok := readAbbrev(&r, wide, version)
		if r.bad {
			return nil, s.bad(secAbbrev, offset, "abbreviation table is malformed")
		}
		if !ok {
			break
		}
		table.addAbbrev(a)
	}
	s.mu.Lock()
	s.abbrevs[key] = table
	s.mu.Unlock()
	return table, nil
}

func (t *abbrevTable) addAbbrev(a abbrev) {
	if a.code == uint64(len(t.dense))+1 {
		t.dense = append(t.dense, a)
		return
	}
	if t.sparse == nil {
		t.sparse = map[uint64]*abbrev{}
	}
	if t.abbrevOf(a.code) == nil {
		t.sparse[a.code] = &a
	}
}

func readAbbrev(r *reader, wide bool, version uint16) (a abbrev, ok bool) {
	a.code = r.uleb()
	if a.code == 0 {
		return a, false
	}
	a.tag = dwarf.Tag(r.uleb())
	a.children = r.u8() != 0
	for !r.bad {
		f := field{attr: dwarf.Attr(r.uleb()), form: form(r.uleb())}
		if f.form == formImplicitConst {
			f.implicit = r.sleb()
		}
		if f.attr == 0 && f.form == 0 {
			break
		}
		n := formSize(f.form, wide, version)
		f.size = int8(n)
		if n < 0 {
			a.size = -1
		} else if a.size >= 0 {
			a.size += n
		}
		a.fields = append(a.fields, f)
	}
	a.notable = a.isNotable()
	return a, true
}

// skipAbbrev skips a declaration; false is the end of the table.
func skipAbbrev(r *reader) bool {
	if r.uleb() == 0 {
		return false
	}
	r.skipLEB()
	r.skip(1)
	for !r.bad {
		attr, f := r.uleb(), form(r.uleb())
		if f == formImplicitConst {
			r.skipLEB()
		}
		if attr == 0 && f == 0 {
			break
		}
	}
	return true
}

// isNotable says whether DIEs of this abbreviation may have code, a static
// address, or name a scope.
func (a *abbrev) isNotable() bool {
	switch a.tag {
	case dwarf.TagSubprogram:
		return a.children || a.has(dwarf.AttrLowpc) || a.has(dwarf.AttrRanges)
	case dwarf.TagVariable:
		return a.has(dwarf.AttrLocation)
	case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType,
		dwarf.TagEnumerationType, dwarf.TagInterfaceType, dwarf.TagModule:
		return a.children
	}
	return false
}

func (a *abbrev) has(attr dwarf.Attr) bool {
	for i := range a.fields {
		if a.fields[i].attr == attr {
			return true
		}
	}
	return false
}
