package replay

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/signalsets"
	"diagnose/internal/wording"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// ExperimentError says that a free replay cannot continue, for a reason outside the program.
type ExperimentError struct {
	What string
	// Moment is where a thread was then; zero if it is not known.
	Moment evidence.Moment
}

func (e *ExperimentError) Error() string {
	if e.Moment.Thread == 0 {
		return "replay: the experiment cannot continue: " + e.What
	}
	return fmt.Sprintf("replay: the experiment cannot continue at %v: %s", e.Moment, e.What)
}

// free is the state of a replay that may diverge from the recording.
type free struct {
	// schedule is the whole order, which may have more events of a thread than its log; nil: the
	// recorded one.
	schedule eventlog.Schedule
	// changed: the process need not end as recorded any more.
	changed bool
	move    *signalMove // nil: none
	edits   []Edit
	// able is the ability of the recorded process's engine: control.free_able.
	able uint32
}

// eventsOver bounds the events of a process that has diverged from the recording, in addition to
// twice the recorded number.
const eventsOver = 1 << 17

// The abilities of an engine in a free replay: free_able of struct dg_control.
const (
	ableToLeave = 1 + iota // leave its log
	ableToRaise            // receive signals that the controller raises
)

// runFree makes one replay, with the timing that is known to be right for the recording. Another
// timing would be another experiment.
func runFree(ctx context.Context, rec *record.Recording, request parts) (*Result, error) {
	timing := request.Timing
	if timing == "" {
		var err error
		if timing, err = rec.Timing(); err != nil {
			return nil, &InputError{Err: err}
		}
	}
	if timing == "" {
		timing = firstTiming
	}
	edits, changes := request.free.edits, slices.ContainsFunc(request.free.breaks, func(b Break) bool { return b.Changes })
	f := &free{schedule: request.schedule, changed: request.schedule != nil || len(edits) > 0 || changes, edits: edits}
	if err := f.plan(rec, &request); err != nil {
		return nil, err
	}
	a := &attempt{timing: timing, free: f}
	a.perform(ctx, rec, request)
	return a.result, a.err
}

// plan turns the request into the parts that a stage takes.
func (f *free) plan(rec *record.Recording, request *parts) error {
	if err := f.planEdits(rec, request); err != nil {
		return err
	}
	if f.schedule == nil {
		return nil
	}
	recorded, err := rec.Log.Schedule()
	if len(recorded) == 0 && err != nil {
		return tracee.Inputf("replay: %w", err)
	}
	// The image has all events before some are removed.
	whole := slices.Clone(f.schedule)
	if m := f.move; m != nil {
		whole = append(whole, eventlog.Turn{Thread: m.thread, Events: uint32(m.dropped())})
	}
	request.schedule = clamp(whole, recorded.Events())
	return nil
}

// clamp removes the events of a schedule that the logs do not have.
func clamp(s eventlog.Schedule, have map[uint32]uint64) eventlog.Schedule {
	left := map[uint32]uint64{}
	for thread, n := range have {
		left[thread] = n
	}
	var known eventlog.Schedule
	for _, turn := range s {
		n := min(uint64(turn.Events), left[turn.Thread])
		left[turn.Thread] -= n
		if n > 0 {
			known = append(known, eventlog.Turn{Thread: turn.Thread, Events: uint32(n)})
		}
	}
	return known
}

// prepare changes the image for the experiment.
func (f *free) prepare(s *recorded.Stage) error {
	if f.move != nil {
		if err := f.move.apply(s); err != nil {
			return err
		}
	}
	if f.schedule == nil {
		return nil
	}
	return f.writeRuns(s)
}

// writeRuns writes the whole order over the part that the logs have. It is the last part of the
// image.
func (f *free) writeRuns(s *recorded.Stage) error {
	header, err := tracee.ReadStruct[agent.RawReplayHeader](s.Image, 0)
	if err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	at := int64(header.Runs) - int64(eventlog.ImageBase)
	order, err := f.schedule.WithPreemptions(s.Preemptions)
	if err != nil {
		return tracee.Inputf("replay: %w", err)
	}
	var runs []byte
	for _, turn := range order {
		runs = le.AppendUint32(le.AppendUint32(runs, turn.Thread), turn.Events)
	}
	header.RunCount, header.Size = uint64(len(order)), uint64(at)+uint64(len(runs))
	s.Layout.Size, s.Layout.Runs = int64(header.Size), order
	s.Schedule = f.schedule
	if _, err := s.Image.WriteAt(runs, at); err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	return writeImage(s.Image, 0, header)
}

// free reports whether the process may diverge from the recording, or has.
func (c *controller) free() bool { return c.attempt.free != nil && c.IsLast() }

// hello tells the engine what it may do.
func (f *free) hello(r *recorded.Recordings, control *agent.RawControl, forked bool) error {
	if !forked {
		f.able = control.FreeAble
	}
	control.Free = agent.FreeNot
	if !r.IsLast() {
		return nil
	}
	if f.able < ableToLeave {
		return tracee.Inputf("replay: the library that recorded %s cannot leave its log: record it again", r.Rec.Dir)
	}
	control.Free, control.FreeFirst = agent.FreeMay, r.Rec.Manifest.Outcome.Thread
	control.FreeMost, control.FreeOrder = 2*r.Stage().Events+eventsOver, 0
	if f.schedule != nil {
		control.FreeOrder = 1
	}
	return nil
}

// freeTrapped answers the engine's requests of free replays, and of threads that continue from where they were parked.
func (c *controller) freeTrapped(t *tracee.Thread, s *tracee.SignalStop) error {
	t.Index = uint32(s.Regs.Rdi)
	switch s.Regs.Rax {
	case agent.TrapLeft:
		if c.attempt.free == nil {
			return c.leftRecording(t)
		}
		return c.freeLeft(t, s)
	case agent.TrapFatal:
		return c.failed(t, int(s.Regs.Rsi))
	case agent.TrapStuck:
		return c.stuckFree(t, s.Regs.Rsi)
	}
	if f := t.Final; f != nil && f.Regs.Rax == agent.TrapExit && f.Regs.Rip == c.TrapPC+1 {
		return c.exitedFree(t, int(uint8(f.Regs.Rdi)))
	}
	return c.unpark(t)
}

// freeLeft: the process is free, and may have diverged from the recording.
func (c *controller) freeLeft(t *tracee.Thread, s *tracee.SignalStop) error {
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	regs := s.Regs
	regs.Rax, regs.Orig_rax = 1, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return err
	}
	if control.Divergence.Reason != agent.DiffersNone && c.result.Left == nil {
		e, err := c.divergence(t, control)
		if err != nil {
			return err
		}
		if err := c.left(t, e); err != nil {
			return err
		}
	}
	if dead := c.FailedThread(); dead != nil {
		c.end = &end{kind: EndFailure, thread: dead, signal: dead.Final.Signal}
		return nil
	}
	t.Deferred = nil
	return c.goOn()
}

// freeFinished: every thread waits, and the log has no more events. That is the recorded end,
// unless something was changed: then the threads continue.
func (c *controller) freeFinished(t *tracee.Thread, s *tracee.SignalStop) error {
	c.Identify(t)
	if dead := c.FailedThread(); dead != nil {
		return c.failed(dead, dead.Final.Signal)
	}
	o := &c.Rec.Manifest.Outcome
	if !c.attempt.free.changed && (o.Kind != record.OutcomeSignal || !c.FaultOutcome()) && o.Kind != record.OutcomeExit && o.Kind != record.OutcomePassed {
		return c.finished(t)
	}
	return c.answer(t, s, agent.FreeIs)
}

// freeDiverged: the engine itself cannot continue.
func (c *controller) freeDiverged(t *tracee.Thread) error {
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	if control.Free != agent.FreeIs {
		return c.diverged(t)
	}
	return c.wild(t, "the engine reached an unknown state")
}

// freeFault handles an instruction that raised a signal. It returns false if the recording has
// that signal.
func (c *controller) freeFault(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	control, err := c.ReadControl()
	if err != nil {
		return true, err
	}
	r, err := c.ReadThread(t.Index)
	if err != nil {
		return true, err
	}
	next, err := c.NextEvent(c.Process, t)
	if err != nil {
		return true, err
	}
	if control.Free == agent.FreeMay &&
		(next == nil && c.EndsWith(t, s.Signal) || next != nil && next.Kind == agent.EvSignal && next.Object == uint64(s.Signal)) {
		return false, nil
	}
	if r.Inside != 0 || s.Regs.Rip >= control.TextLow && s.Regs.Rip < control.TextHigh {
		return true, c.wild(t, fmt.Sprintf("%s inside of the engine, at %#x", wording.Signal(int(s.Signal)), s.Regs.Rip))
	}
	caught, err := catches(t.TID, s.Signal)
	if err != nil {
		return true, err
	}
	switch {
	case caught && c.departed.atSignal(t, s.Signal):
		return true, nil
	case caught:
		return true, c.cont(t, s.Signal)
	}
	return true, c.failed(t, int(s.Signal))
}

// catches reports whether the process has a handler for a signal and the thread does not block it:
// proc_pid_status(5).
func catches(tid int, signal syscall.Signal) (bool, error) {
	sets, err := signalsets.Read(tid)
	if err != nil {
		return false, fmt.Errorf("replay: %w", err)
	}
	return (sets.Caught &^ sets.Blocked).Has(signal), nil
}

// leftRecording handles a thread of a replay of which copies can be made (parts.copies): the engine has left the recording, where
// in another replay it says that it has diverged.
func (c *controller) leftRecording(t *tracee.Thread) error {
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	if control.Divergence.Reason != agent.DiffersNone {
		return c.diverged(t)
	}
	m, err := c.MomentOf(t)
	if err != nil {
		return err
	}
	e := &DivergenceError{Reason: DiffersOrder, Moment: m, PC: m.PC}
	if e.Expected, err = c.NextEvent(c.Process, t); err != nil {
		return err
	}
	return c.diverge(t, e)
}
