package object

import "fmt"

// FormatError says that a file is malformed, and where.
type FormatError struct {
	File    string
	Section string // may be empty
	Offset  uint64 // in the file, or in the section when one is named
	Reason  string
	Err     error // may be nil
}

func (e *FormatError) Error() string {
	if e.Section != "" {
		return e.File + ": " + e.InFile()
	}
	return e.File + " " + e.InFile()
}

// InFile is the text without the file's name.
func (e *FormatError) InFile() string {
	text := fmt.Sprintf("at %#x: %s", e.Offset, e.Reason)
	if e.Section != "" {
		text = e.Section + " " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// UnsupportedError says that a file is well formed as far as is known, but
// of a kind that this package does not read.
type UnsupportedError struct {
	File string
	// What completes "FILE: ... is not supported".
	What string
}

func (e *UnsupportedError) Error() string {
	return e.File + ": " + e.What + " is not supported"
}
