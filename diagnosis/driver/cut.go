package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// atCut analyses the process of a replay at the end of a recording that has no core: the recording
// was cut off, the signal that ended the process leaves no core, or the core is gone. If an
// instruction fails there, that is a failure like any other.
func (a *analysis) atCut(ctx context.Context, replays chan<- struct{}) error {
	rec := a.failing[0]
	a.say("replaying up to where the recording ends")
	told := false
	err := watchtrace.AtEnd(ctx, rec, a.req.imageOptions(), func(p *image.Process) error {
		a.process = p
		if err := a.numberReplayed(a.process); err != nil {
			return err
		}
		a.markExited(p)
		if err := a.chooseThread(a.req.Thread); err != nil {
			return &InputError{err}
		}
		told = true
		if t := p.FailingThread(); t != nil && t.Signal != nil {
			a.limit(a.completeOutcome(t))
			return a.whole(ctx, replays)
		}
		if err := a.judge(ctx); err != nil {
			return err
		}
		if a.result.Failure.Kind == evidence.Deadlock {
			a.stood(outcomeSentence(&rec.Manifest.Outcome), evidence.Limit{Code: evidence.LimitNoCore, Subject: rec.Dir, Reason: noCore})
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
		f := &a.result.Failure
		f.Sentence = evidence.Say(rec.Manifest.Outcome.String() + "; what follows is the process as far as a replay comes, which is not to where its recording ends")
		f.MessageInSentence = false
		u := a.result.Diagnosis.Unknown
		u.Because = slices.Insert(u.Because, 0, evidence.Limit{Code: evidence.LimitReplayEnded, Reason: err.Error()}.Worded())
		return nil
	}
	return &InputError{fmt.Errorf("recording %s: it has no core, and the replay does not reach the place where it ends: %w; its run: %v", rec.Dir, err, &rec.Manifest.Outcome)}
}

// stood completes the recording's outcome, in memory alone, by the result of the replay: its threads
// wait for each other. The process or the recorder was ended after that, as ended says. told says where
// the waits were read.
func (a *analysis) stood(ended string, told evidence.Limit) {
	rec := a.failing[0]
	o := &rec.Manifest.Outcome
	f := &a.result.Failure
	f.Sentence += evidence.Say("; " + ended)
	o.Stuck, o.Thread, o.TID = record.StuckBlocked, 0, 0
	if slices.ContainsFunc(a.result.Findings, func(f evidence.Finding) bool { return f.Kind == evidence.FindingDeadlock }) {
		o.Stuck = record.StuckCycle
	}
	a.limit(told.Worded())
}

// standing describes a process whose recording does not have its end, and whose threads do not wait
// for each other.
func (a *analysis) standing(ctx context.Context) error {
	rec := a.failing[0]
	stages := []stage{{"values", a.values}, {"memory", func() error { return a.killedForMemory(&rec.Manifest.Outcome) }}}
	if err := a.runStages(ctx, stages); err != nil {
		return err
	}
	f := &a.result.Failure
	*f = evidence.Failure{Kind: evidence.NoFailure, Proof: evidence.Inferred, Sentence: evidence.Say(outcomeSentence(&rec.Manifest.Outcome) + here), Site: f.Site, Source: f.Source}
	a.result.Diagnosis = &evidence.Diagnosis{Recording: rec.Dir, Failing: len(a.failing), Passing: len(a.passing), Unknown: newAdvice(&a.req, &a.recordings, a.result, a.process).cutUnknown()}
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

func outcomeSentence(o *record.Outcome) string {
	switch o.Kind {
	case record.OutcomeSignal:
		text := "the process died of " + wording.Signal(o.Signal) + " and left no core"
		if why := o.MemoryWords(); why != "" {
			text += ": " + why
		}
		return text
	case record.OutcomeRunning:
		return "the recorder was killed, or it still records: how the process ended is not known"
	}
	if o.Text != "" {
		return o.Text
	}
	return "the recording ended before the program: how that ended is not known"
}
