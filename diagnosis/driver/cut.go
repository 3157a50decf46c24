package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// withoutCore has the end of the recording replayed, if there is anything to be
// replayed.
func (a *analysis) withoutCore() error {
	rec := a.failing[0]
	switch {
	case rec.Manifest.Outcome.Kind == record.OutcomeExec:
		return fmt.Errorf("recording %s: %s", rec.Dir, ExecutedUnrecorded)
	case len(rec.Log.Threads()) == 0:
		return fmt.Errorf("recording %s: it has no core and no events, so what failed is not known; its run: %v", rec.Dir, &rec.Manifest.Outcome)
	}
	a.cut = true
	return nil
}

// atCut analyses the process as a replay has it, at the end of a recording that has no
// core: it was cut off, the signal that ended the process leaves none, or the core is
// gone. Where an instruction fails there, it is a failure like any other.
func (a *analysis) atCut(ctx context.Context, replays chan<- struct{}) error {
	rec := a.failing[0]
	a.say("replaying up to where the recording ends")
	told := false
	err := watchtrace.AtEnd(ctx, rec, a.imageOptions(), func(p *image.Process) error {
		a.process = p
		if err := a.asRecorded(); err != nil {
			return err
		}
		if err := a.chooseThread(); err != nil {
			return &InputError{err}
		}
		told = true
		if t := p.FailingThread(); t != nil && t.Signal != nil {
			a.ended(t)
			return a.whole(ctx, replays)
		}
		if err := a.judge(ctx); err != nil {
			return err
		}
		if a.result.Failure.Kind == evidence.Deadlock {
			a.hung()
			return a.explain(ctx, replays)
		}
		return a.standing(ctx)
	})
	var input *InputError
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	switch {
	case err == nil || errors.As(err, &input) || ctx.Err() != nil:
		return err
	case told && (errors.As(err, &diverged) || errors.As(err, &stuck)):
		a.result.Failure.Sentence = rec.Manifest.Outcome.String() + "; what follows is the process as far as a replay comes, which is not to where its recording ends"
		u := a.result.Diagnosis.Unknown
		u.Because = slices.Insert(u.Because, 0, err.Error())
		return nil
	}
	return &InputError{fmt.Errorf("recording %s: it has no core, and the replay does not come to where it ends: %w; its run: %v", rec.Dir, err, &rec.Manifest.Outcome)}
}

// asRecorded gives the replayed process the numbers that the recorded one had.
func (a *analysis) asRecorded() error {
	rec := a.failing[0]
	summary, err := rec.Log.Summarize()
	if err != nil {
		return fmt.Errorf("recording %s: %w", rec.Dir, err)
	}
	a.process.Program.PID = rec.Manifest.PID
	if a.process.Program.Command == "" {
		// The kernel keeps 15 bytes of it (TASK_COMM_LEN).
		name := filepath.Base(string(rec.Manifest.Program.Path))
		a.process.Program.Command = name[:min(len(name), 15)]
	}
	for i := range a.process.Threads {
		ref := &a.process.Threads[i].Ref
		for _, t := range summary.Threads {
			if int(t.Index) == ref.Number && t.TID != 0 {
				ref.TID, ref.Recorded = int(t.TID), ref.Number
			}
		}
	}
	return nil
}

// ended completes the recording's outcome, in memory alone, by what the replay came to,
// which replays from here on are compared with.
func (a *analysis) ended(t *image.Thread) {
	rec := a.failing[0]
	o := &rec.Manifest.Outcome
	text := noCore
	if o.Kind != record.OutcomeSignal {
		text = fmt.Sprintf("how the recorded process ended is not in its recording (%v); the failure is what a replay comes to behind the last event", o)
		pc := t.Registers.PC()
		*o = record.Outcome{Kind: record.OutcomeSignal, Signal: t.Signal.Number, Thread: uint32(t.Ref.Number), TID: t.Ref.TID, PC: &pc}
		if t.Signal.HasAddr {
			o.FaultAddr = &t.Signal.Addr
		}
	}
	a.limit(evidence.Limit{Subject: rec.Dir, Text: text})
}

// hung completes the recording's outcome, in memory alone, by what the replay came to: its
// threads wait for each other, and whoever ended the process, or the recorder, came behind
// that.
func (a *analysis) hung() {
	rec := a.failing[0]
	o := &rec.Manifest.Outcome
	f := &a.result.Failure
	f.Sentence += "; " + strings.TrimSuffix(cutSentence(o), here)
	o.Stuck, o.Thread, o.TID = record.StuckBlocked, 0, 0
	if slices.ContainsFunc(a.result.Findings, func(f evidence.Finding) bool { return f.Kind == evidence.FindingDeadlock }) {
		o.Stuck = record.StuckCycle
	}
	a.limit(evidence.Limit{Subject: rec.Dir, Text: noCore})
}

// standing describes a process whose recording does not have its end, and whose threads do not wait
// for each other.
func (a *analysis) standing(ctx context.Context) error {
	rec := a.failing[0]
	stages := []stage{{"values", a.values}, {"memory", func() error { return a.killedForMemory(&rec.Manifest.Outcome) }}}
	if err := a.stages(ctx, stages); err != nil {
		return err
	}
	f := &a.result.Failure
	*f = evidence.Failure{Kind: evidence.NoFailure, Proof: evidence.Inferred, Sentence: cutSentence(&rec.Manifest.Outcome), Site: f.Site, Source: f.Source}
	a.result.Diagnosis = &evidence.Diagnosis{Recording: rec.Dir, Failing: len(a.failing), Passing: len(a.passing), Unknown: a.cutUnknown()}
	a.finish()
	// The thread has not failed, and is shown like all others.
	a.result.Registers = nil
	for i := range a.result.Stacks {
		a.result.Stacks[i].Failing = false
	}
	return nil
}

const (
	here   = "; what follows is the process where its recording ends"
	noCore = "the recording has no core; what one tells was read from a replay"
)

func cutSentence(o *record.Outcome) string {
	switch o.Kind {
	case record.OutcomeSignal:
		text := "the process died of " + unix.SignalName(unix.Signal(o.Signal)) + " and left no core"
		if why := o.MemoryWords(); why != "" {
			text += ": " + why
		}
		return text + here
	case record.OutcomeRunning:
		return "the recorder was killed, or it still records: how the process ended is not known" + here
	}
	if o.Text != "" {
		return o.Text + here
	}
	return "the recording ended before the program: how that ended is not known" + here
}

// cutUnknown says what a recording without a core and its end lacks.
func (a *analysis) cutUnknown() *evidence.Unknown {
	rec := a.failing[0]
	u := &evidence.Unknown{Why: "the recording does not have the failure"}
	if cut := rec.Log.Cut(); cut != nil {
		u.Because = append(u.Because, strings.TrimPrefix(cut.Error(), "record: "))
	}
	for _, l := range rec.Manifest.Limits {
		u.Because = append(u.Because, l.Text)
	}
	u.Next, u.NextWhy = "diagnose replay "+ShellQuote(rec.Dir)+" --gdb", "stands where the recording ends, with all variables"
	if rec.Manifest.Outcome.Kind == record.OutcomeCut {
		u.Next, u.NextWhy = recordAnew(rec)
	}
	return u
}
