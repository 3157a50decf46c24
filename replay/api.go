package replay

import (
	"syscall"

	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
	"diagnose/replay/verify"
	"diagnose/replay/watchpoint"
)

// InputError says that the recording cannot be replayed on this machine: it is damaged, or files
// of the program changed.
type InputError = tracee.InputError

// RegisterError says that a replay needs a debug register that the watches occupy. It would work
// with fewer watches.
type RegisterError = tracee.RegisterError

// Watch is a word of the process to be watched.
type Watch = tracee.Watch

// Arrival is a stop of a thread at an instruction of a ProbeRequest.
type Arrival struct {
	// Stopped is the process. Only the thread is stopped, or waits in its code for the answer (Probing.Asks), until its Process or Stack is
	// asked for; the others wait for the right to run.
	*Stopped
}

// IsFault reports whether a signal is one that instructions raise.
func IsFault(s syscall.Signal) bool { return tracee.IsFault(s) }

// Check reports whether the files that a recording needs are still the recorded ones; an
// *InputError names the first that is not.
func Check(rec *record.Recording) error { return recorded.CheckFiles(rec) }

// Stepping says which parts of a replay are executed one instruction at a time.
type Stepping = step.Stepping

// StepWindow is a part of a thread's events.
type StepWindow = step.StepWindow

// Stepped is an access that a StepRequest reports, or a return from a function of the recording
// library.
type Stepped = step.Stepped

// Executed is an instruction that a StepRequest reports.
type Executed = step.Executed

// Comparison is the comparison of a replay's end with the recorded one.
type Comparison = verify.Comparison

// Difference is one difference between the recording and the replay.
type Difference = verify.Difference

// DifferenceKind is the kind of a Difference.
type DifferenceKind = verify.DifferenceKind

// Exclusion is memory that does not count for Identical.
type Exclusion = verify.Exclusion

// Hit is one access to a watched word.
type Hit = watchpoint.Hit

// LockWord is a word of 4 bytes that says whether a lock of the program is held.
type LockWord = watchpoint.LockWord

// Backend is a mechanism that traces watches.
type Backend = watchpoint.Backend

// The back ends, as in package watchpoint.
const (
	BackendPtrace = watchpoint.BackendPtrace
	BackendBPF    = watchpoint.BackendBPF
	BackendPerf   = watchpoint.BackendPerf
	BackendProbe  = watchpoint.BackendProbe
	BackendPages  = watchpoint.BackendPages
)

// MostLocks is the number of lock words that a replay can read, MostProbed that of words that
// probes can watch.
const (
	MostLocks  = watchpoint.MostLocks
	MostProbed = watchpoint.MostProbed
)

// UnsupportedError says that this machine lacks something that a back end needs.
type UnsupportedError = watchpoint.UnsupportedError

// StopsError says that BackendProbe or BackendPages had to stop too often (Watching.MostStops).
type StopsError = watchpoint.StopsError
