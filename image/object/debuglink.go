package object

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"path/filepath"
	"strings"
)

// The sections that name other files (GDB manual, "Separate Debug Files").
const (
	linkSection    = ".gnu_debuglink"
	altLinkSection = ".gnu_debugaltlink"
)

// debugLink reads .gnu_debuglink: a file name, padded to four bytes, and the
// CRC-32 of the file. ok is false without the section.
func (f *File) debugLink() (name string, crc uint32, ok bool, err error) {
	s := f.Section(linkSection)
	if s == nil {
		return "", 0, false, nil
	}
	b, err := s.Data()
	if err != nil {
		return "", 0, true, err
	}
	fault := f.guard(linkSection, func() {
		end := bytes.IndexByte(b, 0)
		sum := (end + 4) &^ 3
		if end < 0 || sum+4 > len(b) {
			err = s.errorAt(0, "no name and checksum in its %d bytes", len(b))
			return
		}
		name, crc = string(b[:end]), binary.LittleEndian.Uint32(b[sum:])
	})
	if fault != nil {
		return "", 0, true, fault
	}
	// The name must be a file in the object's directory.
	if err == nil && (name == "" || name == "." || name == ".." || strings.Contains(name, "/")) {
		err = s.errorAt(0, "%.80q is no file name", name)
	}
	return name, crc, true, err
}

// debugLink tries the directories in which a .gnu_debuglink is looked up.
func (s *search) debugLink(f *File) {
	if s.found != nil {
		return
	}
	name, crc, ok, err := f.debugLink()
	if !ok {
		return
	}
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	byID := s.accept
	s.accept = func(c *File) error { return acceptLinked(c, f, crc) }
	for _, dir := range f.dirs() {
		if path := filepath.Join(dir, name); path != f.target {
			s.sibling(f, path)
		}
		s.sibling(f, filepath.Join(dir, ".debug", name))
		s.inDebugDirs(filepath.Join(dir, name))
	}
	// A directory given by the user may contain only the debug files.
	for _, dir := range s.finder.DebugDirs {
		s.host(filepath.Join(dir, name))
	}
	s.accept = byID
}

// acceptLinked says why a file found by f's debug link does not belong to f.
// Equal build-ids suffice, so that the file need not be read (elfutils,
// dwfl_standard_find_debuginfo does the same).
func acceptLinked(c, f *File, crc uint32) error {
	if have, want := c.BuildID(), f.BuildID(); have != "" && want != "" {
		return c.checkBuildID(want)
	}
	var sum uint32
	if err := c.guard("", func() { sum = crc32.ChecksumIEEE(c.data) }); err != nil {
		return err
	}
	if sum != crc {
		return c.formatError("", 0, "checksum %#08x where %s needs %#08x", sum, f.path, crc)
	}
	return nil
}

// altLink reads .gnu_debugaltlink: a path and a build-id. ok is false without
// the section.
func (f *File) altLink() (path, id string, ok bool, err error) {
	s := f.Section(altLinkSection)
	if s == nil {
		return "", "", false, nil
	}
	b, err := s.Data()
	if err != nil {
		return "", "", true, err
	}
	fault := f.guard(altLinkSection, func() {
		end := bytes.IndexByte(b, 0)
		if end <= 0 || end+1 == len(b) || len(b)-end-1 > maxBuildID {
			err = s.errorAt(0, "no path and build-id in its %d bytes", len(b))
			return
		}
		path, id = string(b[:end]), hex.EncodeToString(b[end+1:])
	})
	if fault != nil {
		err = fault
	}
	return path, id, true, err
}

// Alternate returns the dwz file that debug's .gnu_debugaltlink names, checked
// by its build-id; (nil, nil) when debug names none. If the named file is not
// found that is an error.
func (d *Finder) Alternate(debug *File) (*File, error) {
	path, id, ok, err := debug.altLink()
	if !ok || err != nil {
		return nil, err
	}
	s := search{finder: d, accept: func(c *File) error { return c.checkBuildID(id) }}
	s.buildID(id)
	if filepath.IsAbs(path) {
		s.target(path)
		s.sibling(debug, path)
	} else {
		for _, dir := range debug.dirs() {
			s.sibling(debug, filepath.Join(dir, path))
		}
	}
	s.inDebugDirs(filepath.Join(".dwz", filepath.Base(path)))
	s.debuginfod(id)
	c, err := s.result()
	if c == nil && err == nil {
		err = debug.formatError(altLinkSection, 0, "the file %s with build-id %s was not found", path, id)
	}
	return c, err
}
