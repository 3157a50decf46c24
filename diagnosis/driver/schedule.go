package driver

import (
	"context"
	"fmt"
	"time"

	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/explore"
	"diagnose/replay/record"
)

// neededTime bounds the replays that find out which preemptions are needed.
const neededTime = 30 * time.Second

// searchSchedule looks for the schedule of failing recordings whose replay does not reach the
// recorded end: without it the replay would show another run. It takes at most half of the time for
// all replays.
func (r *replayStage) searchSchedule(ctx context.Context) error {
	until := r.began.Add(r.req.Time / 2)
	for _, rec := range r.failing {
		opts := explore.Options{Image: r.req.imageOptions(), Progress: func(p explore.Progress) { r.say(p.String()) }}
		if r.req.Time > 0 {
			if opts.Budget = time.Until(until); opts.Budget <= 0 {
				return nil
			}
		}
		found, err := explore.Prepare(ctx, rec, opts)
		switch {
		case ctx.Err() != nil:
			return nil // the diagnosis says so
		case err != nil:
			return fmt.Errorf("the search for the schedule of %s: %w", rec.Dir, err)
		case found != nil && !found.Reproduced:
			r.limit(evidence.Limit{Code: evidence.LimitSchedule, Subject: rec.Dir, Count: uint64(found.Events), Of: uint64(found.Total), Reason: fmt.Sprintf("its replay does not reach the recorded end, and a search of %d attempts found no schedule that does: the furthest reached event %d of %d, and causes are searched in that part. 'diagnose replay --resume --budget 30m %s' continues the search",
				found.Attempts, found.Events, found.Total, rec.Dir)}.Worded())
			continue
		}
		if err := r.tellState(rec); err != nil {
			return err
		}
	}
	return nil
}

// tellState says that replays of a recording end in another state than it did.
func (r *replayStage) tellState(rec *record.Recording) error {
	limits, err := rec.StateLimits()
	for _, l := range limits {
		r.limit(l)
	}
	return err
}

// tellSchedule adds the preemptions that replays of the recording need to fail.
func (r *replayStage) tellSchedule(ctx context.Context) error {
	times := r.req.Replays
	if times <= 0 {
		times = verdict.DefaultReplays
	}
	until := time.Now().Add(neededTime)
	if end := r.began.Add(r.req.Time); r.req.Time > 0 && end.Before(until) {
		until = end
	}
	rec := r.failing[0]
	list, failed, runs, err := explore.Needs(ctx, rec, r.req.imageOptions(), times, until)
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
		p := evidence.Preemption{Thread: r.recordedThread(n.Thread), Event: n.Ordinal, Behind: n.After, Arrival: n.Count, Until: n.Until, Failed: n.Failed, Runs: n.Runs}
		how := image.AtInstruction
		if n.After != "" {
			how = image.ReturnAddress
		}
		p.Site = r.siteAt(n.At, how)
		if n.Last != nil {
			p.Last, p.LastThread, p.LastSite = n.Last.What, r.recordedThread(n.Last.Thread), r.siteAt(n.Last.Site, image.ReturnAddress)
		}
		s.Preemptions = append(s.Preemptions, p)
	}
	r.result.Diagnosis.Schedule = s
	return nil
}
