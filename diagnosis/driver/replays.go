package driver

import (
	"context"
	"time"

	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
)

// replayStage adds the results of replays to a failure that was judged: the program's last output,
// the cause, and the schedule that it needs.
type replayStage struct {
	req *Request
	*draft
	*recordings
	*stoppedProcess
	sources sourceFiles
	// input is the input of the search for the cause.
	input verdict.Input
	began time.Time
}

// replay makes all replays, in the order in which they need each other's results. It closes begun
// before the first.
func (a *analysis) replay(ctx context.Context, begun chan<- struct{}) error {
	if len(a.failing) == 0 {
		return nil
	}
	close(begun)
	r := &replayStage{req: &a.req, draft: &a.draft, recordings: &a.recordings, stoppedProcess: &a.stoppedProcess, sources: a.sources(),
		input: a.verdictInput(), began: a.began}
	if err := r.searchSchedule(ctx); err != nil {
		a.limit(failedPart(err))
	}
	if err := r.tellLastWords(ctx); err != nil {
		a.limit(failedPart(err))
	}
	if err := r.findCause(ctx); err != nil {
		return err
	}
	return r.tellSchedule(ctx)
}

// verdictInput is the failure with its recordings.
func (a *analysis) verdictInput() verdict.Input {
	return verdict.Input{Case: a.result, Process: a.process, Ending: a.ending, Handled: a.signalAt, Waits: a.waits, Blame: a.blame, Failing: a.failing, Passing: a.passing,
		Hops: a.req.Hops, Replays: a.req.Replays, Time: a.req.Time, Spent: time.Since(a.began), Hits: a.req.Hits, Object: a.heapObjectAt, SourceLine: a.sources().lineText, Folded: a.folded, Image: a.req.imageOptions(), Progress: a.req.Progress}
}

// findCause looks for the cause of the failure.
func (r *replayStage) findCause(ctx context.Context) error {
	r.input.Spent = time.Since(r.began)
	d, err := verdict.Diagnose(ctx, r.input)
	if err != nil {
		return err
	}
	r.result.Diagnosis = d
	r.tellProcesses(r.draft, r.process)
	if len(d.Causes) == 0 {
		d.Unknown = newAdvice(r.req, r.recordings, r.result, r.process).unknown()
	}
	r.nameThreads()
	return nil
}

// nameThreads gives the threads of causes the names that they have in the core.
func (r *replayStage) nameThreads() {
	named := map[int]evidence.ThreadRef{}
	for i := range r.process.Threads {
		ref := r.process.Threads[i].Ref
		named[ref.TID] = ref
	}
	name := func(x *evidence.SeenAccess) {
		if x == nil {
			return
		}
		if t, found := named[x.Thread.TID]; found && t.Recorded == x.Thread.Number {
			x.Thread.Name, x.Thread.Start = t.Name, t.Start
		}
	}
	for c := range r.result.Diagnosis.Told() {
		for j := range c.Story {
			name(c.Story[j].Access)
		}
		if c.Interleaving != nil {
			for j := range c.Interleaving.Failing {
				name(&c.Interleaving.Failing[j])
			}
		}
	}
}
