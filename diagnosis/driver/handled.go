package driver

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// readHandled takes from the recording which signals the failing thread had whose handlers
// did not return.
func (a *analysis) readHandled() error {
	if len(a.failing) == 0 || a.process.Program.PID != a.failing[0].Manifest.PID {
		return nil
	}
	rec := a.failing[0]
	if a.thread == nil || a.thread.Ref.TID != rec.Manifest.Outcome.TID {
		return nil
	}
	list, err := rec.Log.Handled(rec.Manifest.Outcome.Thread)
	if err != nil {
		return fmt.Errorf("recording %s: %w", rec.Dir, err)
	}
	a.handled = list
	return nil
}

// handledSignals are those of a.handled as failure wants them. Handlers that were left by a
// jump are not on the stack: failure counts from the innermost.
func (a *analysis) handledSignals() []evidence.Signal {
	var list []evidence.Signal
	for i := range a.handled {
		sig, _ := image.ParseSiginfo(a.handled[i].Info)
		list = append(list, sig)
	}
	return list
}

// explanation is the signal that explains the end of a process which its handler ended; nil
// if no handler did. It is a fault, or the SIGABRT of an abort whose handler ended the
// process with a status. jumped: the handler was left by a jump, and the process ended with a
// status after that.
func (a *analysis) explanation() (at *record.HandledSignal, jumped bool) {
	if len(a.handled) == 0 || a.thread == nil {
		return nil, false
	}
	at = &a.handled[len(a.handled)-1]
	sig, ok := image.ParseSiginfo(at.Info)
	if !ok {
		return nil, false
	}
	f := &a.result.Failure
	switch {
	case at.Place == record.PlaceFault && failure.IsFault(sig.Number) && a.exit != nil && a.handlers() == 0:
		if !a.gaveUpAfter(at) {
			return nil, false
		}
		return at, true
	case a.handlers() == 0 || f.Signal == nil || f.Signal.Number != sig.Number || a.thread.Signal != nil && a.thread.Signal.Code > 0:
		return nil, false
	case at.Place == record.PlaceFault && f.Signal.Code > 0:
		return at, false
	case at.Place == record.PlaceEvent && a.exit != nil && unix.Signal(sig.Number) == unix.SIGABRT && sig.SenderPID == a.process.Program.PID:
		return at, false
	}
	return nil, false
}

// handlers counts the handlers on the failing thread's stack.
func (a *analysis) handlers() int {
	n := 0
	for i := range a.stacks[0].stack.Frames {
		if a.stacks[0].stack.Frames[i].Kind == evidence.SignalFrame {
			n++
		}
	}
	return n
}

// mostAfterJump is how many events a thread may make, after it jumped out of a handler, to
// say that it gives up.
const mostAfterJump = 100

// gaveUpAfter reports whether the process ended soon after a jump out of a handler. One that
// jumped out of others before recovers from faults as a habit, as one that tries what
// memory is readable, and one that made many events has recovered.
func (a *analysis) gaveUpAfter(at *record.HandledSignal) bool {
	if len(a.handled) != 1 {
		return false
	}
	events := uint64(0)
	for e, err := range a.failing[0].Log.Events(at.Thread) {
		if err != nil {
			return false
		}
		events = e.Ordinal
	}
	return events-at.Ordinal <= mostAfterJump
}

// explainHandled explains the failure of a process that a handler ended, by the process at the time
// of the signal: the handler has changed the stack and registers since. If no replay reaches the
// signal, it falls back to the process's end.
func (a *analysis) explainHandled(ctx context.Context, at *record.HandledSignal, jumped bool, replays chan<- struct{}) error {
	rec, core, message := a.failing[0], a.process, a.result.Failure.Message
	if jumped {
		sig, _ := image.ParseSiginfo(at.Info)
		message = fmt.Sprintf("the handler of %s was left by a jump, and the process ended with status %d after that", sig.Name, a.exit.Status)
	}
	before := *a
	a.say("replaying up to the signal")
	told := false
	err := watchtrace.AtSignal(ctx, rec, at, a.imageOptions(), func(p *image.Process) error {
		told = true
		a.atSignal(p, at)
		if err := a.judge(ctx); err != nil {
			return err
		}
		if a.result.Failure.Message == "" {
			a.result.Failure.Message = message
			a.resay()
		}
		if jumped {
			a.result.Failure.Proof = evidence.Inferred
		}
		a.process.Program.Source, a.process.Program.Path = core.Program.Source, core.Program.Path
		return a.explain(ctx, replays)
	})
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	var none *watchtrace.NoSignalError
	switch {
	case err == nil || ctx.Err() != nil || told:
		return err
	case errors.As(err, &diverged) || errors.As(err, &stuck) || errors.As(err, &none):
	default:
		before.limit(evidence.Limit{Subject: rec.Dir, Text: err.Error()})
	}
	*a = before
	return a.explain(ctx, replays)
}

// atSignal makes the process at the time of a signal the one that is judged.
func (a *analysis) atSignal(p *image.Process, at *record.HandledSignal) {
	limits := a.result.Limits
	a.result = &evidence.Case{Timings: a.result.Timings}
	for _, l := range limits {
		if l.Severe {
			a.limit(l)
		}
	}
	p.Program.Command = a.process.Program.Command
	a.ending, a.process = a.process, p
	a.unwinder, a.walked, a.stacks, a.waiting = (*unwind.Unwinder)(nil), nil, nil, nil
	a.signalAt, a.handled, a.exit = at, nil, nil
	a.limit(evidence.Limit{Subject: a.failing[0].Dir, Text: "the process is told as a replay has it when the signal came that its handler took; other threads may have come farther in the recorded run"})
	if err := a.asRecorded(); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
	a.thread = p.FailingThread()
}
