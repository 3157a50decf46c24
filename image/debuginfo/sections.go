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
// split one, whose sections have the suffix .dwo.
type source struct {
	info  *Info
	file  *object.File
	split bool
	// load holds each section's contents, read and decompressed at the first
	// use; a section that is absent is empty without an error.
	load [sectionCount]func() ([]byte, error)
	// sections are those that can be read in part; nil if there is none or
	// several are joined.
	sections [sectionCount]*object.Section
	// windows are the parts of a package's sections that the source has, view
	// the package's units that it can refer to; nil outside of packages.
	windows   windows
	view      *packageView
	index     unitIndex
	alternate func() (*source, error)
	mu        sync.Mutex
	abbrevs   map[uint64]*abbrevTable
}

func newSource(info *Info, file *object.File, split bool) *source {
	s := &source{info: info, file: file, split: split, abbrevs: map[uint64]*abbrevTable{}}
	s.index.init()
	for id := range s.load {
		s.load[id] = sync.OnceValues(func() ([]byte, error) { return s.read(sectionID(id)) })
	}
	if !split {
		for id, name := range sectionNames {
			s.sections[id] = s.file.FilledSection(name)
		}
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
	if s.windows != nil && id != secStr { // the texts of all units are in one
		return s.readWindow(id)
	}
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

// readWindow returns the source's part of a section in a package.
func (s *source) readWindow(id sectionID) ([]byte, error) {
	w, ok := s.windows[id]
	if !ok {
		return nil, nil
	}
	section := s.file.Section(s.sectionName(id))
	if section == nil {
		return nil, s.bad(id, w.offset, "the package lacks the section")
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", section.Name, err)
	}
	if size := uint64(len(data)); w.offset > size || w.size > size-w.offset {
		return nil, s.bad(id, w.offset, fmt.Sprintf("the package's index has %d bytes here", w.size))
	}
	return data[w.offset : w.offset+w.size : w.offset+w.size], nil
}

func (s *source) section(id sectionID) ([]byte, error) { return s.load[id]() }

// upTo returns the first n bytes of a section or more; fewer only if it ends.
func (s *source) upTo(id sectionID, n uint64) ([]byte, error) {
	if s.sections[id] == nil {
		return s.section(id)
	}
	data, err := s.sections[id].Prefix(n)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.sectionName(id), err)
	}
	return data, nil
}

// sizeOf returns a section's size; for one that is only partly decompressed,
// the size that its header claims.
func (s *source) sizeOf(id sectionID) uint64 {
	if s.sections[id] != nil {
		return s.sections[id].Size
	}
	data, _ := s.section(id) // an unreadable section has nothing in it
	return uint64(len(data))
}

// reader returns a reader of a section from an offset, which must be in it;
// errors use what as the name of the data to read.
func (s *source) reader(id sectionID, offset uint64, what string) (reader, error) {
	if offset < s.sizeOf(id) {
		data, err := s.upTo(id, offset+1)
		if err != nil {
			return reader{}, err
		}
		if offset < uint64(len(data)) {
			return reader{data: data, pos: int(offset), more: func(n uint64) ([]byte, error) { return s.upTo(id, n) }}, nil
		}
	}
	if _, err := s.upTo(id, 0); err != nil {
		return reader{}, err
	}
	return reader{}, s.bad(id, offset, what+" beyond the section")
}

// openAlternate opens the file to which dwz moved shared DIEs.
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
	if err := alt.probe(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return alt, nil
}

// stringAt returns the NUL-terminated string at an offset of a section.
func (s *source) stringAt(id sectionID, offset uint64) (string, error) {
	r, err := s.reader(id, offset, "string offset")
	if err != nil {
		return "", err
	}
	text := r.cstring()
	if r.bad {
		return "", s.bad(id, offset, "string without an end")
	}
	return string(text), nil
}
