package gdbserver

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"diagnose/debug"
	"diagnose/internal/wording"
	"diagnose/replay"
)

// left serves a process that has left the recording.
type left struct {
	*Server
	process *debug.Left
}

// leftTime bounds how long it runs for one packet.
const leftTime = 5 * time.Minute

// leave answers the user's command.
func (s monitor) leave() error {
	err := s.Session.Changes().Leave()
	switch {
	case errors.Is(err, debug.ErrLeft):
		return s.tellMoment()
	case errors.Is(err, replay.ErrCopyOver):
		return errors.New("a function that was called here did not return, so the process cannot continue: 'discard' comes first")
	case err != nil:
		return err
	}
	s.goal, s.staying, s.calling, s.changes = nil, false, false, changes{told: s.changes.told}
	s.threads = nil
	fmt.Fprintln(s.out, "The process no longer follows the recording: it is a copy that continues from here, forwards only, until 'discard' goes back to this place.")
	return nil
}

// resume answers an action of vCont; steps is the thread that is to be stepped, 0 if there is none.
func (s left) resume(what string, steps uint32) (string, error) {
	if s.goal != nil || s.staying {
		if err := s.goBack(); err != nil {
			return "", err
		}
		return s.forward(0, span{})
	}
	plan := debug.LeftPlan{Halts: s.halts(), Step: steps, Within: func(debug.Stop) bool { return false }, Time: leftTime}
	switch what[0] {
	case 'C', 'S':
		signal, err := strconv.ParseUint(what[1:], 16, 8)
		if err != nil {
			return "E01", nil
		}
		plan.Deliver = signal != 0
	case 'r':
		start, end, err := parsePair(what[1:])
		if err != nil {
			return "", err
		}
		plan.Within = func(x debug.Stop) bool { return x.PC >= start && x.PC < end && !s.atBreakpoint(x.PC) }
	}
	err := s.process.Continue(plan)
	s.forget()
	if err := s.tellEnd(err); err != nil {
		return "", err
	}
	reply, err := s.stopReply()
	if err != nil {
		return "", err
	}
	return s.withLibraries(reply)
}

// goBack gives the process up.
func (s left) goBack() error {
	fmt.Fprintln(console{s.Server}, "The process that had left the recording is given up: the program is again as recorded.")
	return s.Session.Changes().Discard()
}

// tellEnd tells why the process cannot continue; it returns the errors that are none of the program's.
func (s left) tellEnd(err error) error {
	var e *replay.CallError
	switch {
	case errors.Is(err, debug.ErrLeftTime):
		fmt.Fprintf(console{s.Server}, "The process, which has left the recording, ran for %v and was interrupted; it can continue.\n", leftTime)
		return nil
	case !errors.As(err, &e):
		return err
	}
	fmt.Fprintf(console{s.Server}, "The process, which has left the recording, does not continue: %s. 'discard' goes back to the recording.\n", whyOver(e))
	s.reason = "replaylog:end;"
	return nil
}

// whyOver says what ends a process that has left the recording.
func whyOver(e *replay.CallError) string {
	var stuck *replay.StuckError
	var outside *replay.ExperimentError
	switch {
	case e.End == replay.CallSignal:
		return wording.Signal(e.Signal) + " ends it"
	case errors.As(e.Err, &outside):
		return outside.What
	case !errors.As(e.Err, &stuck) || stuck.Cause == "":
		return oneLine(e.Bare())
	}
	text := string(stuck.Cause)
	for i := range stuck.Threads {
		if t := &stuck.Threads[i]; t.Waits != "" {
			text += fmt.Sprintf("; thread %d waits for %s", t.Thread, t.Waits)
			if t.Object != 0 {
				text += " " + t.Object.String()
			}
		}
	}
	return text
}

// backward answers bc and bs.
func (s left) backward() (string, error) {
	fmt.Fprintln(console{s.Server}, "The process has left the recording and cannot go backwards: 'discard' goes back to where it left.")
	s.reason = "replaylog:begin;"
	s.forget()
	return s.stopReply()
}
