package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/diagnosis/failure"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// handledSignals are the signals of a thread whose handlers did not return, according to the
// recording, in order of time.
type handledSignals []eventlog.HandledSignal

// readHandled reads from the recording the signals of the failing thread whose handlers did not
// return.
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

// onStack returns the signals of the handlers on a stack, the outermost first. Handlers that were
// left by a jump are not on the stack. The others are matched by the interrupted frame. If that
// fails, all signals are returned, and package failure counts from the innermost.
func (h handledSignals) onStack(frames []unwind.Frame) []evidence.Signal {
	left := len(h)
	var list []evidence.Signal
	for i := 0; i+1 < len(frames); i++ {
		if frames[i].Kind != evidence.SignalFrame {
			continue
		}
		at := left - 1
		for at >= 0 && !cameThere(&h[at], &frames[i+1].Registers) {
			at--
		}
		if at < 0 {
			return h.all()
		}
		sig, _ := h[at].Signal()
		list, left = append(list, sig), at
	}
	slices.Reverse(list)
	return list
}

// cameThere reports whether a signal interrupted a thread with these registers.
func cameThere(at *eventlog.HandledSignal, regs *image.Registers) bool {
	const stackPointer = 15 // in the order of eventlog.HandledSignal.Registers
	return at.PC == regs.PC() && at.Registers[stackPointer] == uint64(regs.SP())
}

func (h handledSignals) all() []evidence.Signal {
	var list []evidence.Signal
	for i := range h {
		sig, _ := h[i].Signal()
		list = append(list, sig)
	}
	return list
}

// lastFault is the last of the signals that a failing instruction raised; nil if there is none.
func (h handledSignals) lastFault() *eventlog.HandledSignal {
	for i := range slices.Backward(h) {
		if sig, ok := h[i].Signal(); ok && h[i].Place == eventlog.PlaceFault && failure.IsFault(sig.Number) {
			return &h[i]
		}
	}
	return nil
}

// explanation is the signal that explains the end of a process which its handler ended; nil if no
// handler did. It is a fault, or the SIGABRT of an abort whose handler ended the process with a
// status.
func (a *analysis) explanation() *eventlog.HandledSignal {
	if len(a.handled) == 0 || a.thread == nil {
		return nil
	}
	at := &a.handled[len(a.handled)-1]
	sig, ok := at.Signal()
	if !ok {
		return nil
	}
	f := &a.result.Failure
	switch {
	case a.handlers() == 0 || f.Signal == nil || f.Signal.Number != sig.Number || a.thread.Signal != nil && a.thread.Signal.Code > 0:
		return nil
	case at.Place == eventlog.PlaceFault && f.Signal.Code > 0:
		return at
	case at.Place == eventlog.PlaceEvent && a.exit != nil && unix.Signal(sig.Number) == unix.SIGABRT && sig.SenderPID == a.process.Program.PID:
		return at
	}
	return nil
}

// leftByJump is the last fault whose handler the failing thread left by a jump, in a process that
// ended itself with a status; nil if there is none.
func (a *analysis) leftByJump() *eventlog.HandledSignal {
	if a.exit == nil || a.thread == nil || a.handlers() > 0 {
		return nil
	}
	return a.handled.lastFault()
}

// jumped finds out by experiments whether a fault whose handler was left by a jump led to the end.
// A program may fault on purpose, such as one that tests which memory is readable, and end with a
// status for another reason. The result of the experiments is a finding. It returns the text about
// a fault that led to the end, and "" for any other.
func (a *analysis) jumped(ctx context.Context, at *eventlog.HandledSignal) (message string) {
	sig, _ := at.Signal()
	site, where := &evidence.Site{PC: at.PC}, fmt.Sprintf("at %v", at.PC)
	if calls := a.process.Symbolize(at.PC, image.AtInstruction); len(calls) > 0 && calls[0].Site.Function != "" {
		site, where = &calls[0].Site, "in "+evidence.ShortName(calls[0].Site.Function)
	}
	f := evidence.Finding{Kind: evidence.FindingHandledFault, Site: site, Proof: evidence.Replayed,
		Summary: fmt.Sprintf("the handler of %s %s was left by a jump", sig.Name, where)}
	a.say("replaying without the handled fault")
	list := verdict.WithoutFault(ctx, a.verdictInput(), at)
	last := &list[len(list)-1]
	end := fmt.Sprintf("the process ended with status %d after that", a.exit.Status)
	switch {
	case len(list) > 1 && last.Agrees():
		message = fmt.Sprintf("the handler of %s was left by a jump, and %s; in a replay without the fault: %s", sig.Name, end, last.Outcome)
		f.Summary += ", and " + end
	case len(list) > 1 && last.Undecided == "" && last.Runs > 0 && last.Failed == last.Runs:
		f.Summary += "; without the fault the replays ended in the same way"
	default:
		f.Proof = evidence.Inferred
		why := last.Undecided
		if why == "" {
			why = "the replays ended in different ways"
		}
		f.Summary += "; whether it led to the end is not known"
		f.Facts = append(f.Facts, evidence.Fact{Name: "not known", Text: why})
	}
	for i := range list {
		e := &list[i]
		f.Facts = append(f.Facts, evidence.Fact{Name: "experiment", Text: fmt.Sprintf("%s: %d of %d replays ended as recorded (%s)", e.What, e.Failed, e.Runs, e.Outcome)})
	}
	a.handledFault = &f
	return message
}

// explainHandled explains the failure of a process that a handler ended, by the process at the time
// of the signal: the handler has changed the stack and registers since. If no replay reaches the
// signal, it falls back to the process's end.
func (a *analysis) explainHandled(ctx context.Context, at *eventlog.HandledSignal, jump string, replays chan<- struct{}) error {
	rec, core, message := a.failing[0], a.process, a.result.Failure.Message
	if jump != "" {
		message = jump
	}
	before := *a
	a.say("replaying up to the signal")
	told := false
	err := watchtrace.AtSignal(ctx, rec, at, a.req.imageOptions(), func(p *image.Process) error {
		told = true
		a.atSignal(p, at)
		if err := a.judge(ctx); err != nil {
			return err
		}
		if a.result.Failure.Message == "" {
			a.result.Failure.Message = message
			a.resay()
		}
		if jump != "" {
			a.result.Failure.Proof = evidence.Replayed
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
		before.limit(evidence.Limit{Code: evidence.LimitReplayEnded, Subject: rec.Dir, Reason: err.Error()}.Worded())
	}
	*a = before
	return a.explain(ctx, replays)
}

// atSignal makes the process at the time of a signal the one that is judged.
func (a *analysis) atSignal(p *image.Process, at *eventlog.HandledSignal) {
	limits := a.result.Limits
	a.result = &evidence.Case{Timings: a.result.Timings}
	for _, l := range limits {
		if l.Severe {
			a.limit(l)
		}
	}
	p.Program.Command = a.process.Program.Command
	a.ending, a.process = a.process, p
	a.unwinder, a.walked, a.stacks, a.waiting = nil, nil, nil, nil
	a.signalAt, a.handled, a.exit = at, nil, nil
	a.limit(evidence.Limit{Code: evidence.LimitBeforeHandler, Subject: a.failing[0].Dir, Reason: "the process is told as a replay has it when the signal came that its handler took; other threads may have come farther in the recorded run"}.Worded())
	if err := a.numberReplayed(a.process); err != nil {
		a.limit(failedPart(err))
	}
	a.thread = p.FailingThread()
}

// handledFaults adds the fault that jumped has judged to the findings.
func (a *analysis) handledFaults() error {
	if a.handledFault != nil {
		a.result.Findings = append(a.result.Findings, said([]evidence.Finding{*a.handledFault})...)
	}
	return nil
}
