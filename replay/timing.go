package replay

import (
	"context"
	"time"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// firstTiming is tried first if nothing is known of a recording.
const firstTiming = record.TimingEager

func otherTiming(t record.Timing) record.Timing {
	if t == record.TimingEager {
		return record.TimingLazy
	}
	return record.TimingEager
}

// attempt is one of the replays that Run makes.
type attempt struct {
	timing record.Timing
	// provisional: if the attempt does not reach the recorded end, another follows, and AtEnd is
	// not called for this one.
	provisional bool
	// hooked: a Hook was called.
	hooked bool
	// free: the attempt may diverge from the recording.
	free *free

	result *Result
	err    error
}

func (a *attempt) perform(ctx context.Context, rec *record.Recording, request parts) {
	started := time.Now()
	c := newController(ctx, rec, request, a)
	defer c.Close()
	if a.err = c.prepare(); a.err != nil {
		return
	}
	c.result.Times.Prepare = time.Since(started)
	if a.err = ptrace.OnThread(c.serve); a.err != nil {
		return
	}
	a.result, a.err = c.result, c.end.failure
}

// worked reports whether the replay reached the recorded end, or the requested Moment.
func (r *Result) worked() bool {
	return r.End != EndDiverged && r.End != EndStuck && (r.Comparison == nil || r.Comparison.Identical())
}

// further reports whether a replay got further than another, if neither worked.
func (r *Result) further(than *Result) bool {
	if r.Events != than.Events || r.Comparison == nil || than.Comparison == nil {
		return r.Events > than.Events
	}
	return r.Comparison.Bytes < than.Comparison.Bytes
}

// runAuto replays with the timing that an earlier replay found to be right, or else with the usual
// one. If that does not reach the recorded end, it tries the other timing. One that works is saved
// for the next time. If a search has found preemptions that a replay needs, their timing is used.
func runAuto(ctx context.Context, rec *record.Recording, request parts) (*Result, error) {
	first, err := rec.Timing()
	if err != nil {
		return nil, &InputError{Err: err}
	}
	found, err := rec.Found()
	if err != nil {
		return nil, &InputError{Err: err}
	}
	if found != nil && request.Preemptions == nil {
		a := &attempt{timing: found.Timing}
		a.perform(ctx, rec, request)
		return a.result, a.err
	}
	if first == "" {
		first = firstTiming
	}
	a := &attempt{timing: first, provisional: true}
	if a.perform(ctx, rec, request); a.result == nil || a.result.worked() || a.hooked {
		return a.result, a.err
	}
	b := &attempt{timing: otherTiming(first), provisional: true}
	if b.perform(ctx, rec, request); b.result == nil {
		return nil, b.err
	}
	if b.result.worked() {
		if b.result.End != EndMoment {
			// If it cannot be saved, it is found again next time.
			_ = rec.SetTiming(b.timing)
		}
		return b.result, b.err
	}
	best := b
	if !b.result.further(a.result) {
		best = a
	}
	if request.AtEnd != nil && !b.hooked {
		best = &attempt{timing: best.timing}
		best.perform(ctx, rec, request)
	}
	if best.result != nil {
		best.result.Tried = []record.Timing{first, b.timing}
	}
	return best.result, best.err
}
