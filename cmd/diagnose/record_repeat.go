package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/diagnosis/driver"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder"
)

// tally is the result of the runs so far.
type tally struct {
	runs, failures int
	// last is the last run that passed, first the first one that failed.
	last, first *recorder.Result
	// interrupted is the run that the user ended; nil if none was running.
	interrupted *recorder.Result
}

// repeat records runs until there are enough.
func (r *programRuns) repeat() error {
	var t tally
	progress := newProgress(os.Stderr)
	defer progress.clear()
	input := newSameInput()
	for !r.enough(&t) {
		if t.runs > 0 {
			progress.clear()
			if err := input.again(); err != nil {
				return err
			}
		}
		result, err := r.once()
		if errors.Is(err, context.Canceled) {
			progress.clear()
			say(err.Error())
			break
		}
		if err != nil {
			return err
		}
		if r.stopped(&result) {
			if result.Empty {
				drop(&result) // it had hardly begun
			} else {
				t.interrupted = &result
			}
			break
		}
		if err := t.addResult(&result); err != nil {
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

func (r *programRuns) enough(t *tally) bool {
	return r.flags.repeat > 0 && t.runs >= r.flags.repeat || r.flags.untilFail && t.failures > 0
}

// interruptLate is how much later than the program, which a signal from the terminal may have ended, that signal may come here.
const interruptLate = time.Second

// stopped reports whether the user ended the run and wants no more runs.
func (r *programRuns) stopped(result *recorder.Result) bool {
	if !result.Status.Signaled() || !eventlog.AsksToEnd(int(result.Status.Signal())) {
		return false
	}
	select {
	case <-r.interrupted:
		return true
	case <-time.After(interruptLate):
		return false
	}
}

// addResult adds a run, and keeps only the recordings that are needed.
func (t *tally) addResult(result *recorder.Result) error {
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

func drop(result *recorder.Result) error {
	if result == nil || result.Dir == "" {
		return nil
	}
	return os.RemoveAll(result.Dir)
}

func (t *tally) String() string {
	return fmt.Sprintf("%d runs, %d failed", t.runs, t.failures)
}

// report prints which recordings of all runs were kept.
func (r *programRuns) report(t *tally) error {
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
	if t.interrupted != nil {
		r.reportInterrupted(t)
		r.push(t.interrupted)
	}
	switch {
	case t.first != nil:
		sayOthers(t.first)
		sayCause(t.first, t.last)
		r.push(t.first)
		return &endedError{statusOf(t.first)}
	case t.last != nil:
		return &endedError{t.last.Status}
	}
	if t.interrupted != nil {
		return &endedError{t.interrupted.Status}
	}
	say("no run was completed")
	return &endedError{syscall.WaitStatus(unix.SIGINT)}
}

// hangReplay bounds the replay that tells what the threads of an interrupted run waited for.
const hangReplay = 20 * time.Second

// reportInterrupted prints which recordings were kept of the run that the user ended. The run may
// have hung, so it also prints what the threads waited for.
func (r *programRuns) reportInterrupted(t *tally) {
	text := fmt.Sprintf("run %d was interrupted: %s", t.runs+1, r.summary(t.interrupted))
	if t.first == nil && t.last == nil {
		text = "no run was completed; " + text
	}
	say(text)
	sayOthers(t.interrupted)
	dir := filepath.Join(t.interrupted.Dir, t.interrupted.Culprit)
	if t.interrupted.Dir != "" {
		ctx, cancel := context.WithTimeout(context.Background(), hangReplay)
		defer cancel()
		waits, err := driver.Waits(ctx, dir)
		if err != nil {
			say("what its threads waited for is not known: " + err.Error())
		}
		for _, text := range waits {
			say(text)
		}
		// Where the kernel ended the process before the tracer saw the signal, the result does not
		// tell that it hung; the replay has shown it.
		if len(waits) > 0 && t.interrupted.Outcome.Relocked == nil {
			sayCrash("to find out why it hung", dir, t.last)
			return
		}
	}
	sayCause(t.interrupted, t.last)
}
