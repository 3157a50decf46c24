package driver

import (
	"context"
	"fmt"
	"slices"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// hungBefore analyses the process at the signal that asked it to end, such as Ctrl-C, if none of its threads could continue there. The program
// took the signal, and what it did after that is no failure: that it hung was the reason for the signal. false: there was no such signal, or the threads
// could continue, or no replay reaches it.
func (a *analysis) hungBefore(ctx context.Context, replays chan<- struct{}) (hung bool, err error) {
	if len(a.failing) == 0 || a.given || a.declared() != nil {
		return false, nil
	}
	whole := a.failing[0]
	if !endedOnRequest(&whole.Manifest.Outcome) {
		return false, nil
	}
	asked, err := whole.Log.EndRequest(whole.Manifest.PID)
	if asked == nil || err != nil {
		return false, err
	}
	part, err := untilAsked(whole, asked)
	if err != nil {
		return false, err
	}
	before := *a
	a.result = &evidence.Case{Timings: before.result.Timings, Refused: before.result.Refused}
	a.recordings.failing = slices.Concat([]*record.Recording{part}, before.failing[1:])
	a.cut, a.exit = true, nil
	a.say("replaying up to " + asked.Signal.Name)
	err = watchtrace.AtEnd(ctx, part, a.req.imageOptions(), func(p *image.Process) error {
		a.process = p
		if err := a.numberReplayed(p); err != nil {
			return err
		}
		if err := a.judge(ctx); err != nil {
			return err
		}
		if hung = a.result.Failure.Kind == evidence.Deadlock; !hung {
			return nil
		}
		a.stood(fmt.Sprintf("then %s came, which the program took: %v", asked.Signal.Name, &whole.Manifest.Outcome), evidence.Limit{Code: evidence.LimitBeforeHandler, Subject: whole.Dir, Reason: "the process is told as a replay has it when " + asked.Signal.Name + " came"})
		return a.explain(ctx, replays)
	})
	if hung || ctx.Err() != nil {
		return hung, err
	}
	*a = before // what keeps a replay from coming there is told by the analysis of the end
	return false, nil
}

// endedOnRequest reports whether a process may have ended itself because it was asked to.
func endedOnRequest(o *record.Outcome) bool {
	return o.Kind == record.OutcomeExit && o.Status != 0 || o.Kind == record.OutcomeSignal && eventlog.AsksToEnd(o.Signal)
}

// untilAsked is a recording as if the signal had ended the process that asked it to end.
func untilAsked(whole *record.Recording, asked *eventlog.EndRequest) (*record.Recording, error) {
	part, err := whole.Until(asked.Before, false)
	if err != nil {
		return nil, err
	}
	o := &part.Manifest.Outcome
	*o = record.Outcome{Kind: record.OutcomeSignal, Signal: asked.Signal.Number, Relocked: map[uint32]uint64{}, Asleep: map[uint32]evidence.Addr{}}
	for thread, rest := range asked.Rests {
		o.Relocked[thread] = rest.Relocked
		if rest.Condition != 0 {
			o.Asleep[thread] = rest.Condition + failure.CondSequence
		}
	}
	return part, nil
}
