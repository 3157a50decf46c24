// Package driver knows the order of the stages: it opens the process, unwinds, judges the failure,
// reads values, scans, checks the agent's heap if there is one, and collects the results in one
// evidence.Case. No stage knows another; no stage prints.
package driver

import (
	"time"

	"diagnose/image"
	"diagnose/image/object"
	"diagnose/replay/record"
)

// Request says what to analyse and how.
type Request struct {
	// Exactly one of the four, or none where there is a recording: Core is a path or "-", PID a live process,
	// Dump a process number for coredumpctl's store (0 with HasDump is the
	// last dump).
	Core    string
	PID     int
	Dump    int
	HasDump bool

	// Recordings are of runs that failed, Passing of runs that did not. The core of the first is
	// analysed unless one of the four is given.
	Recordings, Passing []string
	// Opened are recordings that the caller opened, and closes, by their names in Recordings and
	// Passing. The driver opens the others.
	Opened map[string]*record.Recording
	// RaceReports are files with reports of Go's race detector.
	RaceReports []string
	// FailedAt is the place or the moment at which the first of Recordings failed although its run
	// ended well: FUNCTION, FILE:LINE or THREAD:EVENT[:PC[:COUNT]].
	FailedAt string
	// Hops is how many stores a bad value is traced back through, Replays how often each experiment
	// is made; 0 is the usual number.
	Hops, Replays int
	// Time bounds all replays together; 0 is no bound. Hits is how many accesses are logged in each
	// replay; 0 is the usual number.
	Time time.Duration
	Hits uint64

	// Exe overrides the executable's path. Sysroot is prefixed to the paths
	// that the process names; DebugDirs are searched for separate debug files.
	Exe       string
	Sysroot   string
	DebugDirs []string
	// Debuginfod are server URLs; empty means that no network is used.
	Debuginfod        []string
	DebuginfodTimeout time.Duration

	// Thread is the number or TID of the thread to judge; 0 is the failing one.
	Thread int
	// Depth is how many levels of callers and callees the static scan adds;
	// Functions and Message choose its scope for failures without a crash.
	Depth     int
	Functions []string
	Message   string
	// AllThreads shows every thread by itself, with values.
	AllThreads bool
	NoDemangle bool

	// Progress, if set, is called with the work that begins if it may take long.
	Progress func(string)

	// files keeps the objects' files open for all images of the analysis.
	files *image.Files
}

// InputError says that the input cannot be analysed, for a reason outside of the tool: a file that
// is no core, a process that does not exist.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// imageOptions say where the files of processes are.
func (r *Request) imageOptions() image.Options {
	return image.Options{
		Exe:        r.Exe,
		NoDemangle: r.NoDemangle,
		Progress:   r.Progress,
		Files:      r.files,
		Finder: object.Finder{
			Sysroot:    r.Sysroot,
			DebugDirs:  r.DebugDirs,
			Debuginfod: r.Debuginfod,
			Timeout:    r.DebuginfodTimeout,
			Progress:   r.Progress,
		},
	}
}
