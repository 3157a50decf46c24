package debuginfo

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"diagnose/image/object"
)

type sectionID uint8

const (
	secInfo sectionID = iota
	secTypes
	secAbbrev
	secLine
	secStr
	secLineStr
	secStrOffsets
	secAddr
	secRanges
	secRnglists
	secLoc
	secLoclists
	secAranges
	secCUIndex
	secTUIndex
	sectionCount
)

var sectionNames = [sectionCount]string{".debug_info", ".debug_types", ".debug_abbrev", ".debug_line",
	".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_ranges",
	".debug_rnglists", ".debug_loc", ".debug_loclists", ".debug_aranges", ".debug_cu_index", ".debug_tu_index"}

// source is one file of DWARF: the object's own, a dwz alternate file, or a
// split one, whose sections bear the suffix .dwo.
type source struct {
	info  *Info
	file  *object.File
	split bool
	// load holds each section's contents, read and decompressed at the first
	// use; a section that is absent is empty without an error.
	load [sectionCount]func() ([]byte, error)
	// units are in the order of the sections .debug_info and .debug_types;
	// signatures holds the type units among them.
	units      []*unit
	signatures map[uint64]*unit
	alternate  func() (*source, error)
	mu         sync.Mutex
	abbrevs    map[uint64]*abbrevTable
}

func newSource(info *Info, file *object.File, split bool) *source {
	s := &source{info: info, file: file, split: split,
		signatures: map[uint64]*unit{}, abbrevs: map[uint64]*abbrevTable{}}
	for id := range s.load {
		s.load[id] = sync.OnceValues(func() ([]byte, error) { return s.read(sectionID(id)) })
	}
	s.alternate = sync.OnceValues(s.openAlternate)
	return s
}

func (s *source) sectionName(id sectionID) string {
	if s.split {
		switch id {
		case secAddr, secAranges, secRanges, secLineStr, secCUIndex, secTUIndex:
		default:
			return sectionNames[id] + ".dwo"
		}
	}
	return sectionNames[id]
}

func (s *source) read(id sectionID) ([]byte, error) {
	name := s.sectionName(id)
	var all [][]byte
	for _, section := range s.file.Sections() {
		if section.Name != name || section.Size == 0 {
			continue
		}
		data, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		all = append(all, data)
		if !s.split {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	// a .dwo file is not linked: each type unit has a section of its own
	return bytes.Join(all, nil), nil
}

func (s *source) section(id sectionID) ([]byte, error) { return s.load[id]() }

// openAlternate opens the file that dwz moved shared DIEs to.
func (s *source) openAlternate() (*source, error) {
	if s.info.finder == nil {
		return nil, s.unsupported("its dwz alternate file is needed and was not looked for")
	}
	file, err := s.info.finder.Alternate(s.file)
	if err != nil {
		return nil, fmt.Errorf("dwz alternate file: %w", err)
	}
	if file == nil {
		return nil, s.unsupported("its dwz alternate file was not found")
	}
	alt := newSource(s.info, file, false)
	s.info.own(file)
	if err := alt.index(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return alt, nil
}

// stringAt returns the NUL-terminated string at an offset of a section.
func (s *source) stringAt(id sectionID, offset uint64) (string, error) {
	data, err := s.section(id)
	if err != nil {
		return "", err
	}
	if offset >= uint64(len(data)) {
		return "", s.bad(id, offset, "string offset beyond the section")
	}
	end := bytes.IndexByte(data[offset:], 0)
	if end < 0 {
		return "", s.bad(id, offset, "string without an end")
	}
	return string(data[offset : offset+uint64(end)]), nil
}
