package replay

import (
	"fmt"
	"time"

	"diagnose/agent"
	"diagnose/replay/breakpoint"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// judge decides how a replay ended: as recorded, elsewhere, or because no thread could continue.
// It compares the process with the recorded end.
type judge struct {
	process    *tracee.Process
	recordings *recorded.Recordings
	placer     *breakpoint.Breakpoints
	result     *Result
	// reordered: the request has another schedule, so events may remain.
	reordered bool
	// unnamed leaves names and stacks out.
	unnamed bool
	// sleeping and computing bound the time without an event; see Common.
	sleeping, computing time.Duration
	// end is set once the replay is over.
	end *end
}

// failed handles a process that a signal ends.
func (j *judge) failed(t *tracee.Thread, signal int) error {
	j.end = &end{kind: EndFailure, thread: t, signal: signal}
	if j.result.Left != nil || j.recordings.AsRecorded(t, signal) {
		return nil
	}
	m, err := j.process.MomentOf(t)
	if err != nil {
		return err
	}
	return j.left(t, &DivergenceError{Reason: DiffersFault, Signal: signal, PC: m.PC})
}

// left notes where the process diverges from the recording. All threads are stopped.
func (j *judge) left(t *tracee.Thread, e *DivergenceError) error {
	if j.result.Left != nil {
		return nil
	}
	j.result.Left = e
	return j.name(t, e)
}

// wild ends the replay for a reason outside the program.
func (j *judge) wild(t *tracee.Thread, what string) error {
	e := &ExperimentError{What: what}
	j.end = &end{kind: EndStuck, thread: t, failure: e}
	if err := j.process.StopAll(); err != nil {
		return err
	}
	e.Moment, _ = j.process.MomentOf(t)
	return nil
}

// exitedFree handles the exit of a process that may diverge from the recording.
func (j *judge) exitedFree(t *tracee.Thread, status int) error {
	j.end = &end{kind: EndExit, thread: t, status: status}
	switch o := &j.recordings.Rec.Manifest.Outcome; o.Kind {
	case record.OutcomeExit, record.OutcomePassed:
		if o.Status == status {
			return nil
		}
	case record.OutcomeCut, record.OutcomeRunning:
		return nil
	}
	return j.left(t, &DivergenceError{Reason: DiffersEnd, Status: status})
}

// stuckFree handles a process that may diverge from the recording, if no thread can continue or
// they loop for ever.
func (j *judge) stuckFree(t *tracee.Thread, why uint64) error {
	if err := j.stuck(t, false); err != nil {
		return err
	}
	e := j.end.failure.(*StuckError)
	e.After, e.Holder, e.Due = 0, 0, 0
	switch why {
	case agent.StuckInput:
		j.end.kind, j.end.failure = EndIdle, nil
		j.result.Idle = e.Threads
	case agent.StuckCycle:
		e.Cause = StuckCycle
	case agent.StuckEvents:
		e.Cause = StuckEvents
	default:
		e.Cause = StuckBlocked
	}
	return nil
}

// exitOvertaken reports whether a thread that is about to end the process is to wait at that place for
// ever: the recorded one came as far, and another thread's signal ended the process before the kernel did.
func (j *judge) exitOvertaken(t *tracee.Thread) bool {
	o := &j.recordings.Stage().Rec.Manifest.Outcome
	return o.Kind == record.OutcomeSignal && j.recordings.IsLast() && !j.recordings.EndsShort() && o.Thread != t.Index
}

// exited handles a process that is about to exit by a thread whose index is known.
func (j *judge) exited(t *tracee.Thread, s *tracee.SignalStop, free bool) error {
	o := &j.recordings.Stage().Rec.Manifest.Outcome
	status := int(uint8(s.Regs.Rdi))
	if !j.recordings.IsLast() {
		return fmt.Errorf("replay: process %d ended before it made the process that is asked for", j.process.PID)
	}
	if free {
		return j.exitedFree(t, status)
	}
	switch o.Kind {
	case record.OutcomeExit, record.OutcomePassed:
		if o.Status == status {
			j.end = &end{kind: EndExit, thread: t, status: status}
			return nil
		}
	case record.OutcomeCut, record.OutcomeRunning:
		j.end = &end{kind: EndExit, thread: t, status: status}
		return nil
	}
	return j.diverge(t, &DivergenceError{Reason: DiffersEnd, Status: status})
}

// finished handles a process whose threads all wait while no event is left.
func (j *judge) finished(t *tracee.Thread) error {
	j.process.Identify(t)
	if !j.recordings.IsLast() {
		return fmt.Errorf("replay: the recording %s ended before it made the process that is asked for", j.recordings.Stage().Rec.Dir)
	}
	left, err := j.recordings.LeftOver(j.process, j.reordered)
	if err != nil {
		return err
	}
	if left != 0 {
		if err := j.stuck(t, false); err != nil {
			return err
		}
		j.end.failure.(*StuckError).Cause = StuckCause(fmt.Sprintf("all threads rest, as at the recording's end, with %d of its events left", left))
		return nil
	}
	if dead := j.process.FailedThread(); dead != nil && j.recordings.EndsShort() {
		j.end = &end{kind: EndFault, thread: dead, signal: dead.Final.Signal}
		return nil
	}
	o := &j.recordings.Stage().Rec.Manifest.Outcome
	kind := o.Kind
	if j.recordings.EndsShort() {
		kind = record.OutcomeCut
	}
	switch kind {
	case record.OutcomeSignal:
		failing := j.process.ThreadNumbered(o.Thread)
		if failing == nil {
			failing = t
		}
		if j.recordings.FaultOutcome() && (failing.Final == nil || failing.Final.Signal != o.Signal) {
			return j.diverge(failing, &DivergenceError{Reason: DiffersEnd})
		}
		j.end = &end{kind: EndFailure, thread: failing, signal: o.Signal}
	case record.OutcomeExit, record.OutcomePassed:
		return j.diverge(t, &DivergenceError{Reason: DiffersEnd})
	case record.OutcomeExec:
		j.end = &end{kind: EndExec, thread: t}
	default:
		j.end = &end{kind: EndLog, thread: t}
	}
	return nil
}

// diverge ends the replay with a divergence.
func (j *judge) diverge(t *tracee.Thread, e *DivergenceError) error {
	j.end = &end{kind: EndDiverged, thread: t, failure: e}
	return j.name(t, e)
}
