package replay

import (
	"syscall"

	"diagnose/replay/record"
	"diagnose/replay/tracee"
)

// InputError says that the recording cannot be replayed on this machine: it is damaged, or files
// of the program changed.
type InputError = tracee.InputError

// RegisterError says that a replay needs a debug register that the watches occupy. It would work
// with fewer watches.
type RegisterError = tracee.RegisterError

// Watch is a word of the process to be watched.
type Watch = tracee.Watch

// IsFault reports whether a signal is one that instructions raise.
func IsFault(s syscall.Signal) bool { return tracee.IsFault(s) }

// Check reports whether the files that a recording needs are still the recorded ones; an
// *InputError names the first that is not.
func Check(rec *record.Recording) error { return CheckFiles(rec) }
