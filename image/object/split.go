package object

import (
	"encoding/binary"
	"io/fs"
	"path/filepath"
)

// Split opens the .dwo of a skeleton unit; compDir and name are the skeleton's
// attributes, and id its DWO id, 0 for not known. An id that differs from that
// of a DWARF 5 file is an error; for no file at all it is fs.ErrNotExist.
func (d *Finder) Split(debug *File, compDir, name string, id uint64) (*File, error) {
	if name == "" {
		return nil, debug.formatError(".debug_info", 0, "a skeleton unit without a file name")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(compDir, name)
	}
	s := search{finder: d, accept: func(c *File) error { return c.checkSplitID(id) }}
	s.target(path)
	s.sibling(debug, path)
	// Objects are often moved together with their .dwo files.
	for _, dir := range debug.dirs() {
		s.sibling(debug, filepath.Join(dir, name))
		s.sibling(debug, filepath.Join(dir, filepath.Base(name)))
	}
	c, err := s.result()
	if c != nil || err != nil {
		return c, err
	}
	return nil, &fs.PathError{Op: "find split DWARF", Path: path, Err: fs.ErrNotExist}
}

// Package opens the .dwp file next to the object, which has the split units of
// all its skeletons; nil without an error when there is none.
func (d *Finder) Package(debug *File) (*File, error) {
	s := search{finder: d, accept: func(f *File) error {
		if f.Section(".debug_cu_index") == nil {
			return f.formatError(".debug_cu_index", 0, "no such section: not a DWARF package")
		}
		return nil
	}}
	s.sibling(debug, debug.target+".dwp")
	return s.result()
}

// checkSplitID compares the DWO id in the header of the first unit, where DWARF
// 5 stores it (section 7.5.1.2).
func (f *File) checkSplitID(id uint64) error {
	s := f.Section(".debug_info.dwo")
	if s == nil {
		return f.formatError(".debug_info.dwo", 0, "no such section: not split DWARF")
	}
	b, err := s.Data()
	if err != nil || id == 0 {
		return err
	}
	have, known := uint64(0), false
	if err := f.guard(s.Name, func() { have, known = splitID(b) }); err != nil {
		return err
	}
	if known && have != id {
		return s.errorAt(0, "DWO id %#x where %#x is needed", have, id)
	}
	return nil
}

func splitID(b []byte) (id uint64, ok bool) {
	const splitCompile = 5 // DW_UT_split_compile
	if len(b) < 4 {
		return 0, false
	}
	offsetSize := 4
	if binary.LittleEndian.Uint32(b) == 0xffffffff { // 64-bit DWARF
		offsetSize = 8
		b = b[min(len(b), 8):]
	}
	if len(b) < 4 {
		return 0, false
	}
	b = b[4:]
	at := 4 + offsetSize // version, unit type, address size, abbreviations
	if len(b) < at+8 || binary.LittleEndian.Uint16(b) != 5 || b[2] != splitCompile {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[at:]), true
}
