package debuginfo

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"fmt"
	"strings"
)

// maxCandidates bounds the positions examined for one name.
const maxCandidates = 1 << 18

// nameSearch finds DIEs by name without an index: it looks for the string in
// the string sections, for references to it in the raw bytes of the DIEs, and
// confirms each match by reading the unit.
type nameSearch struct {
	name string
	// accept is called with each DIE of that name until it returns true.
	accept func(e *entry) bool
	left   int
}

func (i *Info) searchName(name string, accept func(e *entry) bool) error {
	n := &nameSearch{name: name, accept: accept, left: maxCandidates}
	sources := []*source{i.main}
	if i.main.file.Section(".gnu_debugaltlink") != nil {
		alt, err := i.main.alternate()
		if err != nil {
			i.problem(err)
		} else {
			sources = append(sources, alt)
		}
	}
	for _, s := range sources {
		if i.searched.Add(int64(min(s.sizeOf(secInfo), maxSearched+1))) > maxSearched {
			return s.unsupported(fmt.Sprintf("no index of names, and %d MiB of DWARF are too much to search again for %q", s.sizeOf(secInfo)>>20, name))
		}
		if done, err := n.in(s); done || err != nil {
			return err
		}
	}
	return nil
}

// maxSearched bounds the bytes of DIEs searched for names in total: a small
// object can be searched for every name, an object of hundreds of megabytes a
// few times.
const maxSearched = 1 << 30

// HasFunction reports whether a function of this name is defined in the main file: its DW_AT_name, without namespaces.
func (i *Info) HasFunction(name string) (found bool, err error) {
	err = i.searchName(name, func(e *entry) bool {
		found = found || e.tag() == dwarf.TagSubprogram && !e.flag(dwarf.AttrDeclaration)
		return found
	})
	return found, err
}

// searchFrom searches the unit hint first, and its file if that is a split one;
// nil is no hint.
func (i *Info) searchFrom(hint *unit, name string, accept func(e *entry) bool) error {
	n := &nameSearch{name: name, accept: accept, left: maxCandidates}
	if hint != nil {
		if n.inUnit(hint) {
			return nil
		}
		if hint.src.split {
			units, err := hint.src.units()
			if err != nil {
				return err
			}
			for _, u := range units {
				if u.broken == nil && u != hint && n.inUnit(u) {
					return nil
				}
			}
			if n.inPackage(hint.src.view) {
				return nil
			}
		}
	}
	return i.searchName(name, accept)
}

// inPackage searches the type units of a package; nil is no package.
func (n *nameSearch) inPackage(v *packageView) bool {
	if v == nil {
		return false
	}
	for _, signature := range v.pack.types.signatures() {
		u, err := v.typeUnit(signature)
		if err != nil {
			v.skeleton.src.info.problem(err)
		}
		if u != nil && u.broken == nil && n.inUnit(u) {
			return true
		}
	}
	return false
}

// maxStrings bounds the occurrences of a name in the string section. The linker
// merges a string with the tail of a longer one, so references to any
// occurrence may exist.
const maxStrings = 1 << 14

func (n *nameSearch) in(s *source) (done bool, err error) {
	strs, err := s.section(secStr)
	if err != nil {
		return false, err
	}
	whole := append([]byte(n.name), 0)
	var offsets []uint32
	for at := 0; len(offsets) < maxStrings; at++ {
		k := bytes.Index(strs[at:], whole)
		if k < 0 {
			break
		}
		at += k
		offsets = append(offsets, uint32(at))
		if done, err := n.indexed(s, uint64(at)); done || err != nil {
			return done, err
		}
	}
	for _, id := range []sectionID{secInfo, secTypes} {
		data, err := s.section(id)
		if err != nil {
			return false, err
		}
		if n.raw(s, id, data, formStrp, offsetFinder(offsets, len(strs))) ||
			n.raw(s, id, data, formString, func(b []byte) int { return bytes.Index(b, whole) }) {
			return true, nil
		}
	}
	return false, nil
}

// offsetFinder returns a function that finds the first reference to one of
// the strings in raw bytes, -1 if there is none.
func offsetFinder(offsets []uint32, size int) func([]byte) int {
	if len(offsets) == 1 {
		pattern := binary.LittleEndian.AppendUint32(nil, offsets[0])
		return func(b []byte) int { return bytes.Index(b, pattern) }
	}
	// a bit for each byte of the string section is looked up in one step
	set := make([]uint64, size/64+1)
	for _, off := range offsets {
		set[off/64] |= 1 << (off % 64)
	}
	if len(offsets) == 0 {
		return func([]byte) int { return -1 }
	}
	return func(b []byte) int {
		for i := 0; i+4 <= len(b); i++ {
			off := binary.LittleEndian.Uint32(b[i:])
			if int(off) < size && set[off/64]&(1<<(off%64)) != 0 {
				return i
			}
		}
		return -1
	}
}

// raw searches a section of DIEs for names of one form.
func (n *nameSearch) raw(s *source, id sectionID, data []byte, f form, find func([]byte) int) bool {
	const reach = 12 // of the name from the start of its DIE
	for at := 0; n.left > 0; at++ {
		k := find(data[at:])
		if k < 0 {
			return false
		}
		at += k
		n.left--
		u, err := s.unitOf(id, uint64(at))
		if err != nil || u == nil || u.broken != nil {
			continue
		}
		e, ok := u.entryWith(dwarf.AttrName, uint64(at), reach, func(_ dwarf.Tag, has form) bool { return has == f })
		if !ok || e.tag() != dwarf.TagVariable && (e.flag(dwarf.AttrDeclaration) || !isNamedType(e.tag())) {
			continue // most are declarations, and confirming them is expensive
		}
		if u.startsEntry(e.off) && n.accept(&e) {
			return true
		}
	}
	return false
}

// entryWith guesses which DIE has an attribute's value at a position: one that
// starts within reach ahead of it and whose abbreviation fits.
func (u *unit) entryWith(attr dwarf.Attr, at, reach uint64, fits func(dwarf.Tag, form) bool) (entry, bool) {
	table, err := u.abbrevs()
	data, dataErr := u.data()
	if err != nil || dataErr != nil {
		return entry{}, false
	}
	for start := at - 1; start >= u.first && at-start <= reach; start-- {
		r := reader{data: data, pos: int(start)}
		a := table.abbrevOf(r.uleb())
		if a == nil || r.bad || !a.has(attr) {
			continue
		}
		e := entry{unit: u, off: start, abbrev: a, attrs: r.pos}
		if pos, f, ok := e.fieldPosition(attr); ok && pos == at && fits(a.tag, f) {
			if e, err = u.entryAt(start); err == nil {
				return e, true
			}
		}
	}
	return entry{}, false
}

// fieldPosition returns the position and the form of an attribute's value.
func (e *entry) fieldPosition(attr dwarf.Attr) (uint64, form, bool) {
	data, err := e.unit.data()
	if err != nil {
		return 0, 0, false
	}
	r := reader{data: data, pos: e.attrs}
	for i := range e.abbrev.fields {
		field := &e.abbrev.fields[i]
		if field.attr == attr {
			return uint64(r.pos), field.form, !r.bad
		}
		if field.size >= 0 {
			r.skip(uint64(field.size))
		} else {
			skipForm(&r, field.form, e.unit.wide, e.unit.version)
		}
	}
	return 0, 0, false
}

// startsEntry confirms that a DIE begins at an offset.
func (u *unit) startsEntry(off uint64) bool {
	w, err := u.walk(u.first)
	if err != nil {
		return false
	}
	var e entry
	for uint64(w.r.pos) <= off && w.next(&e) {
		if e.off == off {
			return true
		}
		if e.abbrev == nil || !e.abbrev.children {
			continue
		}
		if v, ok := e.attr(dwarf.AttrSibling); ok {
			if _, next, err := v.ref(); err == nil && next <= off && next > e.off {
				w.r.pos = int(next)
			}
		}
	}
	return false
}

// indexed searches the units that refer to a string by index.
func (n *nameSearch) indexed(s *source, str uint64) (bool, error) {
	data, err := s.section(secStrOffsets)
	if err != nil || len(data) == 0 {
		return false, err
	}
	pattern := binary.LittleEndian.AppendUint32(nil, uint32(str))
	for at := 0; n.left > 0; at++ {
		k := bytes.Index(data[at:], pattern)
		if k < 0 {
			break
		}
		at += k
		n.left--
		if at%4 != 0 {
			continue
		}
		units, err := s.unitsByBase(uint64(at), func(u *unit) uint64 { return u.root.strOffsetsBase })
		if err != nil {
			return false, err
		}
		for _, u := range units {
			full, err := u.splitUnit()
			if err != nil || full == nil {
				full = u
			}
			if n.inUnit(full) {
				return true, nil
			}
		}
	}
	return false, nil
}

// unitsByBase returns the units whose part of a section, which begins at
// their base, holds a position. Several units may share one base.
func (s *source) unitsByBase(at uint64, base func(*unit) uint64) ([]*unit, error) {
	units, err := s.units()
	var list []*unit
	nearest := uint64(0)
	for _, u := range units {
		b := base(u)
		if b > at || b < nearest || b == 0 {
			continue
		}
		if b > nearest {
			nearest, list = b, nil
		}
		if len(list) < maxOverlap {
			list = append(list, u)
		}
	}
	return list, err
}

// inUnit passes the unit's types and variables of that name to accept.
func (n *nameSearch) inUnit(u *unit) bool {
	names, err := u.types()
	if err != nil {
		u.src.info.problem(err)
		return false
	}
	for _, off := range names[n.name] {
		if e, err := u.entryAt(off); err == nil && n.accept(&e) {
			return true
		}
	}
	return false
}

// indexTypes maps the unqualified names of a unit's types and variables to
// their DIEs, declared types left out.
func (u *unit) indexTypes() (map[string][]uint64, error) {
	w, err := u.walk(u.first)
	if err != nil {
		return nil, err
	}
	names := map[string][]uint64{}
	var e entry
	for w.next(&e) {
		if e.abbrev == nil || !isNamedType(e.abbrev.tag) && e.abbrev.tag != dwarf.TagVariable {
			continue
		}
		v, ok := e.attr(dwarf.AttrName)
		if !ok || e.abbrev.tag != dwarf.TagVariable && e.flag(dwarf.AttrDeclaration) {
			continue
		}
		name, err := v.str()
		if err != nil {
			return nil, err
		}
		names[name] = append(names[name], e.off)
	}
	return names, w.err
}

func isNamedType(tag dwarf.Tag) bool {
	switch tag {
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagInterfaceType,
		dwarf.TagEnumerationType, dwarf.TagTypedef, dwarf.TagBaseType, dwarf.TagTemplateAlias,
		dwarf.TagUnspecifiedType:
		return true
	}
	return false
}

// unitOf returns the unit that holds an offset of a section.
func (s *source) unitOf(id sectionID, offset uint64) (*unit, error) {
	if id == secInfo {
		return s.unitAt(offset)
	}
	units, err := s.units()
	for _, u := range units {
		if u.section == id && offset >= u.first && offset < u.end {
			return u, nil
		}
	}
	return nil, err
}

// typeLookup is the cached result of a search for a definition.
type typeLookup struct {
	found *dieType
	err   error
}

// definition returns the complete type of a qualified name and kind: from
// the unit itself, or else from any.
func (i *Info) definition(name string, tag dwarf.Tag, hint *unit, language int64) (*dieType, bool, error) {
	i.mu.Lock()
	known := i.named[name]
	i.mu.Unlock()
	if known != nil {
		return known.found, known.found != nil, known.err
	}
	known = &typeLookup{}
	accept := func(e *entry) bool {
		if !isNamedType(e.tag()) || tag != 0 && recordTag(e.tag()) != recordTag(tag) ||
			e.flag(dwarf.AttrDeclaration) || e.abbrev.has(dwarf.AttrSignature) {
			return false
		}
		own := e.unit.describe().Language
		if own == 0 { // a partial unit
			own = language
		}
		full, err := e.displayName(own)
		if err != nil || full != name {
			return false
		}
		known.found = i.dieTypeOf(typeKey{unit: e.unit, off: e.off, language: own})
		return true
	}
	known.err = i.searchFrom(hint, unqualified(name), accept)
	i.mu.Lock()
	if len(i.named) < maxTypes {
		i.named[name] = known
	}
	i.mu.Unlock()
	return known.found, known.found != nil, known.err
}

// recordTag treats struct and class as the same, as C++ does.
func recordTag(tag dwarf.Tag) dwarf.Tag {
	if tag == dwarf.TagClassType {
		return dwarf.TagStructType
	}
	return tag
}

// unqualified returns the last part of a qualified name; a template's
// arguments belong to it.
func unqualified(name string) string {
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case '>', ')', '}':
			depth++
		case '<', '(', '{':
			depth--
		case ':':
			if depth == 0 && name[i-1] == ':' {
				return name[i+1:]
			}
		}
	}
	return name
}

// TypeNamed returns the complete type with this name from the unit that
// covers hint, or else from any unit. The name is qualified as in C++; a
// leading struct, class, union or enum restricts the kind.
func (i *Info) TypeNamed(name string, hint uint64) (t Type, ok bool, err error) {
	tag := dwarf.Tag(0)
	for keyword, kind := range map[string]dwarf.Tag{"struct ": dwarf.TagStructType, "class ": dwarf.TagStructType,
		"union ": dwarf.TagUnionType, "enum ": dwarf.TagEnumerationType} {
		if rest, has := strings.CutPrefix(name, keyword); has {
			name, tag = rest, kind
			break
		}
	}
	if name == "" {
		return nil, false, nil
	}
	var unit *unit
	language := int64(0)
	if p, err := i.placeAt(hint); err == nil && p.unit != nil {
		unit, language = p.unit, p.unit.describe().Language
	}
	found, ok, err := i.definition(name, tag, unit, language)
	if !ok {
		return nil, false, err
	}
	return found, true, err
}
