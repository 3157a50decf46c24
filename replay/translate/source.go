package translate

import (
	"bytes"

	"diagnose/replay/tracee"
)

// source is the code of the process that was read for translation.
type source struct {
	process *tracee.Process
	maps    tracee.Mappings
	pages   map[uint64][]byte // by address; nil: it is no code, or the process may write to it
}

func (s *source) clear() { s.maps, s.pages = nil, map[uint64][]byte{} }

// read returns at most n bytes of code.
func (s *source) read(pc uint64, n int) (code []byte) {
	for len(code) < n {
		at := pc + uint64(len(code))
		page := s.page(at &^ (tracee.PageSize - 1))
		if page == nil {
			break
		}
		rest := page[at%tracee.PageSize:]
		code = append(code, rest[:min(len(rest), n-len(code))]...)
	}
	return code
}

func (s *source) page(at uint64) []byte {
	page, known := s.pages[at]
	if known {
		return page
	}
	if s.maps == nil {
		maps, err := tracee.ReadMaps(s.process.PID)
		if err != nil {
			return nil
		}
		s.maps = maps
	}
	if m := s.maps.Containing(at); isCode(m) {
		page = make([]byte, tracee.PageSize)
		if _, err := s.process.Memory.ReadAt(page, int64(at)); err != nil {
			page = nil
		}
	}
	s.pages[at] = page
	return page
}

func isCode(m *tracee.Mapping) bool { return m != nil && m.Perms[2] == 'x' && m.Perms[1] != 'w' }

// same reports whether all that was read is still there.
func (s *source) same() bool {
	maps, err := tracee.ReadMaps(s.process.PID)
	if err != nil {
		return false
	}
	now := make([]byte, tracee.PageSize)
	for at, page := range s.pages {
		if isCode(maps.Containing(at)) != (page != nil) {
			return false
		}
		if page == nil {
			continue
		}
		if _, err := s.process.Memory.ReadAt(now, int64(at)); err != nil || !bytes.Equal(now, page) {
			return false
		}
	}
	s.maps = maps
	return true
}
