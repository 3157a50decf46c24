package debuginfo

import (
	"debug/dwarf"
	"fmt"
	"sync"
)

// Unit types of DWARF 5 (section 7.5.1); older versions distinguish them by
// section and attributes.
const (
	utCompile      = 1
	utType         = 2
	utPartial      = 3
	utSkeleton     = 4
	utSplitCompile = 5
	utSplitType    = 6
)

// unit is one unit of .debug_info or .debug_types.
type unit struct {
	src                *source
	section            sectionID
	offset, first, end uint64 // of the header, the root DIE, the unit's end
	version            uint16
	wide               bool
	kind               uint8
	abbrevOffset       uint64
	signature          uint64 // of a type unit, or the id of a split unit
	typeOffset         uint64
	root               rootAttrs
	skeleton           *unit // of a split unit
	broken             error // why its root DIE cannot be read
	once               sync.Once
	public             *Unit
	data               func() ([]byte, error)
	abbrevs            func() (*abbrevTable, error)
	table              func() (*unitTable, error)
	lines              func() (*lineTable, error)
	types              func() (map[string][]uint64, error)
	splitUnit          func() (*unit, error)
	scopes             scopes
}

// rootAttrs are the attributes of a unit's root DIE that others depend on.
type rootAttrs struct {
	tag                           dwarf.Tag
	name, compDir, dwoName        value
	producer                      value
	language                      int64
	low                           value
	high, ranges                  value
	stmtList                      value
	strOffsetsBase, addrBase      uint64
	rnglistsBase, loclistsBase    uint64
	gnuRangesBase                 uint64
	hasStrOffsetsBase             bool
	hasRnglistsBase, hasLoclistsB bool
}

// budget bounds the work that grows with the number of units.
type budget struct{ left int }

// readHeader reads a unit's header and returns where the next one is. The
// unit is nil for one of a version or format that is not supported.
func (s *source) readHeader(id sectionID, offset uint64) (u *unit, next uint64, err error) {
	r, err := s.reader(id, offset, "unit")
	if err != nil {
		return nil, 0, err
	}
	u = &unit{src: s, section: id, offset: offset}
	length, wide := r.length()
	u.wide = wide
	if r.bad || length > s.sizeOf(id)-uint64(r.pos) {
		return nil, 0, s.bad(id, offset, "unit is longer than the section")
	}
	u.end = uint64(r.pos) + length
	r.has(min(length, maxHeader)) // if they do not exist, reading them fails
	r.data, r.more = r.data[:min(uint64(len(r.data)), u.end)], nil
	u.version = r.u16()
	addrSize := s.readHeaderFields(&r, u)
	u.first = uint64(r.pos)
	switch {
	case u.version < 2 || u.version > 5:
		s.info.problem(s.bad(id, offset, fmt.Sprintf("unit of DWARF version %d", u.version)))
		return nil, u.end, nil
	case r.bad:
		s.info.problem(s.bad(id, offset, "unit header is cut off"))
		return nil, u.end, nil
	case addrSize != 8:
		s.info.problem(s.bad(id, offset, fmt.Sprintf("unit with addresses of %d bytes", addrSize)))
		return nil, u.end, nil
	}
	u.bind()
	return u, u.end, nil
}

// maxHeader is more than the size of a unit's header after its length.
const maxHeader = 64

func (s *source) readHeaderFields(h *reader, u *unit) (addrSize uint8) {
	if u.version >= 5 {
		u.kind = h.u8()
		addrSize = h.u8()
		u.abbrevOffset = h.offset(u.wide)
		switch u.kind {
		case utSkeleton, utSplitCompile:
			u.signature = h.u64()
		case utType, utSplitType:
			u.signature = h.u64()
			u.typeOffset = u.offset + h.offset(u.wide)
		}
		return addrSize
	}
	u.abbrevOffset = h.offset(u.wide)
	addrSize = h.u8()
	u.kind = utCompile
	if u.section == secTypes {
		u.kind = utType
		u.signature = h.u64()
		u.typeOffset = u.offset + h.offset(u.wide)
	}
	return addrSize
}

func (u *unit) bind() {
	u.data = sync.OnceValues(u.readData)
	u.scopes = scopes{unit: u, trees: map[uint64]*blockTree{}, functions: map[uint64]*Function{}}
	u.abbrevs = sync.OnceValues(func() (*abbrevTable, error) {
		return u.src.abbrevsAt(u.abbrevOffset, u.wide, u.version)
	})
	u.table = sync.OnceValues(u.buildTable)
	u.lines = sync.OnceValues(u.readLines)
	u.types = sync.OnceValues(u.indexTypes)
	u.splitUnit = sync.OnceValues(u.openSplit)
}

// readData returns the section up to the unit's end, so that positions in it
// are section offsets and nothing reads past the unit.
func (u *unit) readData() ([]byte, error) {
	data, err := u.src.upTo(u.section, u.end)
	if err != nil {
		return nil, err
	}
	if uint64(len(data)) < u.end {
		return nil, u.src.bad(u.section, u.offset, "unit is longer than the section")
	}
	return data[:u.end:u.end], nil
}

// readRoot reads the root DIE. It looks up only the abbreviation of that DIE,
// because parsing the whole table of every unit would cost more than the rest
// of the index.
func (u *unit) readRoot(work *budget) error {
	data, err := u.data()
	if err != nil {
		return err
	}
	r := &reader{data: data, pos: int(u.first)}
	code := r.uleb()
	table, err := u.src.reader(secAbbrev, u.abbrevOffset, "abbreviation table")
	if err != nil {
		return err
	}
	ar := &table
	for work.left > 0 {
		before := ar.pos
		if peeked := *ar; peeked.uleb() != code {
			ok := skipAbbrev(ar)
			if work.left -= ar.pos - before; ar.bad || !ok {
				break
			}
			continue
		}
		a, ok := readAbbrev(ar, u.wide, u.version)
		if ar.bad || !ok {
			break
		}
		if a.code == code {
			u.readRootAttrs(r, &a)
			if r.bad {
				return u.src.bad(u.section, u.first, "root entry is cut off")
			}
			return nil
		}
	}
	return u.src.bad(u.section, u.first, fmt.Sprintf("root entry has abbreviation %d, which its table lacks", code))
}

func (u *unit) readRootAttrs(r *reader, a *abbrev) {
	u.root.tag = a.tag
	if a.tag == dwarf.TagPartialUnit {
		u.kind = utPartial
	}
	for i := range a.fields {
		f := &a.fields[i]
		u.root.set(f.attr, readForm(r, u, f.form, f.implicit), u)
	}
	u.root.setDefaults(u)
}

func (a *rootAttrs) set(attr dwarf.Attr, v value, u *unit) {
	switch attr {
	case dwarf.AttrName:
		a.name = v
	case dwarf.AttrCompDir:
		a.compDir = v
	case dwarf.AttrProducer:
		a.producer = v
	case dwarf.AttrLanguage:
		a.language = int64(v.number)
	case dwarf.AttrLowpc:
		a.low = v
	case dwarf.AttrHighpc:
		a.high = v
	case dwarf.AttrRanges:
		a.ranges = v
	case dwarf.AttrStmtList:
		a.stmtList = v
	case dwarf.AttrStrOffsetsBase:
		a.strOffsetsBase, a.hasStrOffsetsBase = v.number, true
	case dwarf.AttrAddrBase, attrGNUAddrBase:
		a.addrBase = v.number
	case dwarf.AttrRnglistsBase:
		a.rnglistsBase, a.hasRnglistsBase = v.number, true
	case dwarf.AttrLoclistsBase:
		a.loclistsBase, a.hasLoclistsB = v.number, true
	case attrGNURangesBase:
		a.gnuRangesBase = v.number
	case dwarf.AttrDwoName, attrGNUDwoName:
		a.dwoName = v
		if u.kind == utCompile && !u.src.split {
			u.kind = utSkeleton
		}
	case attrGNUDwoID:
		u.signature = v.number
	}
}

// setDefaults fills in the bases of a split unit, which follow the section's
// first header (DWARF 5 section 7.26 to 7.29, and section E.2).
func (a *rootAttrs) setDefaults(u *unit) {
	list, strs := uint64(12), uint64(8)
	if u.wide {
		list, strs = 20, 16
	}
	if u.version < 5 {
		strs = 0 // GNU's .debug_str_offsets.dwo has no header
	}
	if !a.hasRnglistsBase {
		a.rnglistsBase = list
	}
	if !a.hasLoclistsB {
		a.loclistsBase = list
	}
	if !a.hasStrOffsetsBase {
		a.strOffsetsBase = strs
	}
}

// Attributes of GNU's extensions that debug/dwarf has no names for.
const (
	attrGNUCallSiteValue dwarf.Attr = 0x2111
	attrGNUDwoName       dwarf.Attr = 0x2130
	attrGNUDwoID         dwarf.Attr = 0x2131
	attrGNURangesBase    dwarf.Attr = 0x2132
	attrGNUAddrBase      dwarf.Attr = 0x2133
)

// describe returns the unit as a public Unit.
func (u *unit) describe() *Unit {
	u.once.Do(func() {
		from := u.root
		if u.skeleton != nil {
			// the skeleton holds the directory and the split unit the rest
			if from.compDir.form == 0 {
				from.compDir = u.skeleton.root.compDir
			}
		}
		u.public = &Unit{Name: from.name.text(), CompDir: from.compDir.text(),
			Producer: from.producer.text(), Language: from.language}
	})
	return u.public
}

// text is a string for show: one that cannot be read is empty.
func (v value) text() string {
	if v.form == 0 {
		return ""
	}
	s, err := v.str()
	if err != nil {
		return ""
	}
	return s
}

// home is the unit whose bases for .debug_addr, line table and low_pc are
// valid.
func (u *unit) home() *unit {
	if u.skeleton != nil {
		return u.skeleton
	}
	return u
}

// base is the unit's base address for its range and location lists.
func (u *unit) base() (uint64, error) {
	low := u.root.low
	if u.skeleton != nil {
		low = u.skeleton.root.low
	}
	if low.form == 0 {
		return 0, nil
	}
	return low.addr()
}
