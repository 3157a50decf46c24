// Command diagnose finds the root cause of a native crash.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"diagnose/fleet/privateroot"
	"diagnose/replay/recorder"
	"diagnose/reports"
)

// The exit statuses, which the help text and the man page list.
const (
	exitOK       = 0
	exitInternal = 1
	exitUsage    = 2
	exitInput    = 3
	// exitNotReplayed is for a replay that is not as the recording.
	exitNotReplayed = 4
	// exitFailingSchedule is for a hunt that found what it looked for.
	exitFailingSchedule = 4
	// exitNewCause is for a night that found something new.
	exitNewCause = 4
	// exitInterrupted is what a shell reports for a program that SIGINT ended.
	exitInterrupted = 130
)

func main() {
	privateroot.Init()
	recorder.Init()
	if os.Getenv("GOGC") == "" {
		// A report is finished before uncollected memory adds up.
		debug.SetGCPercent(150)
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) { // jobs that a script put into the background ignore it
		signals = append(signals, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	misnamed := refuseHelp(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = *misnamed
	}
	if err == nil {
		return exitOK
	}
	var ended *endedError
	if errors.As(err, &ended) {
		return ended.repeat()
	}
	var fails *failingScheduleError
	if errors.As(err, &fails) {
		return exitFailingSchedule
	}
	var differs *notReplayedError
	if errors.As(err, &differs) {
		return exitNotReplayed
	}
	var news *newCauseError
	if errors.As(err, &news) {
		return exitNewCause
	}
	// Errors contain names of files and programs that the target chooses, and arguments with
	// secrets.
	for _, line := range reports.MessageLines(err.Error()) {
		fmt.Fprintln(os.Stderr, "diagnose:", line)
	}
	return exitStatus(err)
}

// secondEnds restores the default action, so that another interrupt ends this process. The kernel
// ends replayed processes with their tracer (ptrace(2), PTRACE_O_EXITKILL).
func secondEnds() { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// errInterrupted is returned if the report was written before the work was done.
var errInterrupted = errors.New("interrupted; the report has the findings until then")

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}
