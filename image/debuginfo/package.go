package debuginfo

import (
	"encoding/binary"
	"fmt"
	"sync"

	"diagnose/image/object"
)

// dwarfPackage is a .dwp file: the sections of many .dwo files, joined, with
// indexes that say which part of each section belongs to which unit (DWARF 5
// section 7.3.5; for DWARF 4, gcc.gnu.org/wiki/DebugFissionDWP).
type dwarfPackage struct {
	file         *object.File
	units, types *packageIndex
}

// window is a unit's part of a section.
type window struct{ offset, size uint64 }

// windows are a unit's parts; sections that the index does not have are absent.
type windows map[sectionID]window

// packageIndex is a .debug_cu_index or .debug_tu_index.
type packageIndex struct {
	source        *source // for errors
	section       sectionID
	data          []byte
	columns       []sectionID
	units, slots  uint64
	table, offset uint64 // of the hash table and of the first row of offsets
}

// mostColumns bounds the columns of an index; there are 8 kinds of sections.
const mostColumns = 16

// noSection stands for columns that are not read, such as macros.
const noSection = sectionCount

// The sections of columns (DWARF 5 table 7.1, and its predecessor).
var (
	packageColumns5 = map[uint32]sectionID{1: secInfo, 3: secAbbrev, 4: secLine, 5: secLoclists, 6: secStrOffsets, 8: secRnglists}
	packageColumns2 = map[uint32]sectionID{1: secInfo, 2: secTypes, 3: secAbbrev, 4: secLine, 5: secLoc, 6: secStrOffsets}
)

// openPackage opens the package next to the object; nil when there is none.
func (i *Info) openPackage() (*dwarfPackage, error) {
	file, err := i.finder.Package(i.main.file)
	if file == nil || err != nil {
		return nil, err
	}
	i.own(file)
	s := newSource(i, file, true)
	p := &dwarfPackage{file: file}
	if p.units, err = readPackageIndex(s, secCUIndex); err != nil {
		return nil, err
	}
	if p.units == nil {
		return nil, s.unsupported("the package has no .debug_cu_index")
	}
	p.types, err = readPackageIndex(s, secTUIndex)
	return p, err
}

// readPackageIndex reads the header of an index; nil when the section is absent.
func readPackageIndex(s *source, id sectionID) (*packageIndex, error) {
	data, err := s.section(id)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	const header = 16
	if len(data) < header {
		return nil, s.bad(id, 0, "the index is cut off")
	}
	le := binary.LittleEndian
	version, columns := le.Uint32(data), uint64(le.Uint32(data[4:]))
	known := packageColumns5
	switch version & 0xffff { // DWARF 5 has a half word of padding
	case 2:
		known = packageColumns2
	case 5:
	default:
		return nil, s.unsupported(fmt.Sprintf("version %d of %s", version, sectionNames[id]))
	}
	x := &packageIndex{source: s, section: id, data: data, units: uint64(le.Uint32(data[8:])), slots: uint64(le.Uint32(data[12:])), table: header}
	titles := x.table + 12*x.slots
	x.offset = titles + 4*columns
	if columns > mostColumns || x.slots&(x.slots-1) != 0 || x.offset+8*columns*x.units > uint64(len(data)) {
		return nil, s.bad(id, 4, fmt.Sprintf("an index of %d columns, %d units and %d slots", columns, x.units, x.slots))
	}
	for i := range columns {
		column, ok := known[le.Uint32(data[titles+4*i:])]
		if !ok {
			column = noSection
		}
		x.columns = append(x.columns, column)
	}
	return x, nil
}

// find returns the parts of the unit with a signature; nil when the index does
// not have it.
func (x *packageIndex) find(signature uint64) (windows, error) {
	if x == nil || x.slots == 0 || signature == 0 {
		return nil, nil
	}
	mask := x.slots - 1
	slot, step := signature&mask, signature>>32&mask|1
	for range x.slots {
		row := binary.LittleEndian.Uint32(x.data[x.table+8*x.slots+4*slot:])
		if row == 0 {
			return nil, nil
		}
		if binary.LittleEndian.Uint64(x.data[x.table+8*slot:]) == signature {
			return x.row(uint64(row))
		}
		slot = (slot + step) & mask
	}
	return nil, nil
}

// row returns the parts of row n, counted from 1.
func (x *packageIndex) row(n uint64) (windows, error) {
	if n > x.units {
		return nil, x.source.bad(x.section, x.table, fmt.Sprintf("row %d of %d", n, x.units))
	}
	w := windows{}
	columns := uint64(len(x.columns))
	sizes := x.offset + 4*columns*x.units
	for i, id := range x.columns {
		if id == noSection {
			continue
		}
		at := 4 * (columns*(n-1) + uint64(i))
		part := window{uint64(binary.LittleEndian.Uint32(x.data[x.offset+at:])), uint64(binary.LittleEndian.Uint32(x.data[sizes+at:]))}
		if part.size > 0 {
			w[id] = part
		}
	}
	return w, nil
}

// mostPackageTypes bounds the type units that are searched for a name.
const mostPackageTypes = 1 << 14

// signatures are those of the index, at most mostPackageTypes.
func (x *packageIndex) signatures() (list []uint64) {
	if x == nil {
		return nil
	}
	for slot := range x.slots {
		if binary.LittleEndian.Uint32(x.data[x.table+8*x.slots+4*slot:]) != 0 && len(list) < mostPackageTypes {
			list = append(list, binary.LittleEndian.Uint64(x.data[x.table+8*slot:]))
		}
	}
	return list
}

// packageView is what one skeleton sees of a package: its own unit, and the
// type units that this refers to.
type packageView struct {
	pack     *dwarfPackage
	skeleton *unit
	mu       sync.Mutex
	types    map[uint64]*unit // by signature; nil units were not found
}

// source makes the source of a unit with given parts.
func (v *packageView) source(w windows) (*source, error) {
	s := newSource(v.skeleton.src.info, v.pack.file, true)
	s.windows, s.view = w, v
	units, err := s.units()
	for _, u := range units {
		u.skeleton = v.skeleton
	}
	return s, err
}

// typeUnit finds a type unit in the package; nil when it has none with the
// signature.
func (v *packageView) typeUnit(signature uint64) (*unit, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if u, ok := v.types[signature]; ok {
		return u, nil
	}
	w, err := v.pack.types.find(signature)
	if w == nil || err != nil {
		return nil, err
	}
	s, err := v.source(w)
	if err != nil {
		return nil, err
	}
	s.index.mu.Lock()
	u := s.index.signatures[signature]
	s.index.mu.Unlock()
	v.types[signature] = u
	return u, nil
}

// packageSource is the source of a skeleton in the package next to the object;
// nil when there is no package.
func (i *Info) packageSource(skeleton *unit) (*source, error) {
	p, err := i.pack()
	if p == nil || err != nil {
		return nil, err
	}
	w, err := p.units.find(skeleton.signature)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, skeleton.src.unsupported(fmt.Sprintf("%s has no unit with the id %#x", p.file.Path(), skeleton.signature))
	}
	v := &packageView{pack: p, skeleton: skeleton, types: map[uint64]*unit{}}
	return v.source(w)
}
