package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/record"
)

// tally is what runs have come to.
type tally struct {
	runs, failures int
	// last is of the last run that passed, first of the first that failed.
	last, first *record.Result
}

// repeat records runs until there were enough.
func (r *recorder) repeat() error {
	var t tally
	progress := newProgress(os.Stderr)
	defer progress.clear()
	for !r.enough(&t) {
		result, err := r.once()
		if err != nil {
			return err
		}
		if r.stopped(&result) {
			drop(&result)
			break
		}
		if err := t.add(&result); err != nil {
			return err
		}
		progress.say(t.String())
		if len(r.interrupted) > 0 {
			break
		}
	}
	progress.clear()
	return r.report(&t)
}

func (r *recorder) enough(t *tally) bool {
	return r.flags.repeat > 0 && t.runs >= r.flags.repeat || r.flags.untilFail && t.failures > 0
}

// stopped reports whether somebody ended the run who wants no more of them.
func (r *recorder) stopped(result *record.Result) bool {
	if len(r.interrupted) == 0 || !result.Status.Signaled() {
		return false
	}
	switch result.Status.Signal() {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
		return true
	}
	return false
}

// add keeps what is to be kept of the runs so far.
func (t *tally) add(result *record.Result) error {
	t.runs++
	if !result.Failed {
		old := t.last
		t.last = result
		return drop(old)
	}
	t.failures++
	if t.first != nil {
		return drop(result)
	}
	t.first = result
	return nil
}

func drop(result *record.Result) error {
	if result == nil || result.Dir == "" {
		return nil
	}
	return os.RemoveAll(result.Dir)
}

func (t *tally) String() string {
	return fmt.Sprintf("%d runs, %d failed", t.runs, t.failures)
}

// report says what was kept of all runs.
func (r *recorder) report(t *tally) error {
	if t.first != nil {
		say(fmt.Sprintf("%v; the first that failed: %s", t, r.summary(t.first)))
	}
	if t.last != nil {
		text := "the last that passed was not kept"
		if t.last.Dir != "" {
			text = fmt.Sprintf("the last that passed is in %s", shellQuote(relative(t.last.Dir)))
		}
		if t.first == nil {
			text = fmt.Sprintf("%v; %s", t, text)
		}
		say(text)
	}
	switch {
	case t.first != nil:
		sayOthers(t.first)
		sayCause(t.first, t.last)
		return &endedError{statusOf(t.first)}
	case t.last != nil:
		return &endedError{t.last.Status}
	}
	say("no run was completed")
	return &endedError{syscall.WaitStatus(unix.SIGINT)}
}
