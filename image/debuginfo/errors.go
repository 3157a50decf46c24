package debuginfo

import "diagnose/image/object"

// UnsupportedError names a DWARF construct that this package does not support,
// or a file that it would need. Everything that depends on it is unknown, not
// absent.
type UnsupportedError struct {
	File string
	What string
}

func (e *UnsupportedError) Error() string { return e.File + ": " + e.What }

func (s *source) bad(id sectionID, offset uint64, reason string) error {
	return &object.FormatError{File: s.file.Path(), Section: s.sectionName(id), Offset: offset, Reason: reason}
}

func (s *source) unsupported(what string) error {
	return &UnsupportedError{File: s.file.Path(), What: what}
}
