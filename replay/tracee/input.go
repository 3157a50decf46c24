package tracee

import "fmt"

// InputError says that the recording cannot be replayed on this machine: it is damaged, or files
// of the program changed.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

func (e *InputError) Unwrap() error { return e.Err }

// Inputf returns an *InputError with a text.
func Inputf(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...)}
}
