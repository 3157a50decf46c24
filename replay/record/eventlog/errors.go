package eventlog

import (
	"errors"
	"fmt"
)

// VersionError says that a recording is of a newer version than this tool.
type VersionError struct {
	File      string
	Got, Want int
}

func (e *VersionError) Error() string { return "record: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *VersionError) Bare() string {
	return fmt.Sprintf("%s has version %d, this tool reads up to %d: use a newer diagnose", e.File, e.Got, e.Want)
}

// InputError says that a file or directory of a recording cannot be opened or read. It
// wraps the system's error, such as os.ErrNotExist.
type InputError struct{ Err error }

func (e *InputError) Error() string { return "record: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *InputError) Bare() string { return e.Err.Error() }

func (e *InputError) Unwrap() error { return e.Err }

// CutError says that a log ends before the recording did: the file is shorter than it was, or
// its recorder did not live to write its header.
type CutError struct {
	File   string
	Offset int64
	What   string
}

func (e *CutError) Error() string { return "record: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *CutError) Bare() string {
	return fmt.Sprintf("%s is cut off at %#x: %s", e.File, e.Offset, e.What)
}

// CorruptError says that a file of a recording has contents that no recorder writes.
type CorruptError struct {
	File   string // name in the recording
	Offset int64
	What   string
}

func (e *CorruptError) Error() string { return "record: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *CorruptError) Bare() string {
	return fmt.Sprintf("%s at %#x: %s", e.File, e.Offset, e.What)
}

// Damaged reports whether a failed read of a file means that the file is damaged: a *CutError
// or a *CorruptError.
func Damaged(err error) bool {
	var cut *CutError
	var corrupt *CorruptError
	return errors.As(err, &cut) || errors.As(err, &corrupt)
}
