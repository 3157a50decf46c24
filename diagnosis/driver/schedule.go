package driver

import (
	"context"
	"fmt"
	"time"

	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/explore"
)

// neededTime bounds the replays that find out which preemptions are needed.
const neededTime = 30 * time.Second

// search looks for the schedule of failing recordings whose replay does not come to
// the recorded end: what would be seen of it would be of another run. It takes half
// of the time that there is for all replays.
func (a *analysis) search(ctx context.Context) error {
	until := a.started.Add(a.req.Time / 2)
	for _, rec := range a.failing {
		opts := explore.Options{Image: a.imageOptions(), Progress: func(p explore.Progress) { a.say(p.String()) }}
		if a.req.Time > 0 {
			if opts.Budget = time.Until(until); opts.Budget <= 0 {
				return nil
			}
		}
		r, err := explore.Prepare(ctx, rec, opts)
		switch {
		case ctx.Err() != nil:
			return nil // the diagnosis says so
		case err != nil:
			return fmt.Errorf("the search for the schedule of %s: %w", rec.Dir, err)
		case r != nil && !r.Reproduced:
			a.limit(evidence.Limit{Subject: rec.Dir, Text: fmt.Sprintf("its replay does not come to the recorded end, and a search of %d attempts found no schedule that leads there: the furthest came to event %d of %d; what is said of causes is of that part. 'diagnose replay --resume --budget 30m %s' goes on",
				r.Attempts, r.Events, r.Total, rec.Dir)})
		}
	}
	return nil
}

// schedule tells what replays of the recording need to fail.
func (a *analysis) schedule(ctx context.Context) error {
	times := a.req.Replays
	if times <= 0 {
		times = verdict.DefaultReplays
	}
	until := time.Now().Add(neededTime)
	if end := a.started.Add(a.req.Time); a.req.Time > 0 && end.Before(until) {
		until = end
	}
	rec := a.failing[0]
	list, failed, runs, err := explore.Needs(ctx, rec, a.imageOptions(), times, until)
	if ctx.Err() != nil {
		return nil // the diagnosis says so
	}
	if err != nil || list == nil {
		return err
	}
	found, err := rec.Found()
	if err != nil || found == nil {
		return err
	}
	s := &evidence.Schedule{By: found.By, Attempts: found.Attempts, Failed: failed, Runs: runs}
	for _, n := range list {
		p := evidence.Preemption{Thread: a.recordedThread(n.Thread), Event: n.Ordinal, Behind: n.Behind, Arrival: n.Count, Until: n.Until, Failed: n.Failed, Runs: n.Runs}
		how := image.AtInstruction
		if n.Behind != "" {
			how = image.ReturnAddress
		}
		p.Site = a.siteAt(n.At, how)
		if n.Last != nil {
			p.Last, p.LastThread, p.LastSite = n.Last.What, a.recordedThread(n.Last.Thread), a.siteAt(n.Last.Site, image.ReturnAddress)
		}
		s.Preemptions = append(s.Preemptions, p)
	}
	a.result.Diagnosis.Schedule = s
	return nil
}

// siteAt names a place; nil: it is nowhere.
func (a *analysis) siteAt(pc evidence.Addr, how image.Lookup) *evidence.Site {
	if pc == 0 {
		return nil
	}
	return &a.process.Symbolize(pc, how)[0].Site
}

// recordedThread is a thread by its number in the recording.
func (a *analysis) recordedThread(number uint32) evidence.ThreadRef {
	for i := range a.process.Threads {
		if ref := a.process.Threads[i].Ref; ref.Recorded == int(number) {
			return ref
		}
	}
	return evidence.ThreadRef{Number: int(number), Recorded: int(number)}
}
