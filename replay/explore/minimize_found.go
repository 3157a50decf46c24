package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// NoScheduleError says that a recording has no decisions that could be removed.
type NoScheduleError struct {
	Dir string
	Why string
}

func (e *NoScheduleError) Error() string {
	return fmt.Sprintf("explore: %s has nothing to take away: %s", e.Dir, e.Why)
}

// FoundMinimal is the reduced preemptions that a search found for a recording whose threads
// were scheduled by the kernel. The replay needs each of them to reach the recorded end.
type FoundMinimal struct {
	Preemptions []eventlog.Preemption `json:"preemptions"`
	// Before is the number of preemptions at the start. Replays is how many replays were tried.
	Before  int `json:"before"`
	Replays int `json:"replays"`
	// Passing are the preemptions of the nearest schedule with which the program passes: all of
	// these but one, Without. Passes is false if there is none; then Otherwise says how the
	// tried ones ended.
	Passes    bool                  `json:"passes"`
	Passing   []eventlog.Preemption `json:"passing,omitempty"`
	Without   *eventlog.Preemption  `json:"without,omitempty"`
	Otherwise []string              `json:"otherwise,omitempty"`
	// LeftOut says which steps were left out, and why; empty: none.
	LeftOut string  `json:"left_out,omitempty"`
	Time    float64 `json:"seconds"`
}

// MinimizeFound removes from the preemptions that a search found for a recording (record.Found)
// those that its replay does not need, and stores the rest. Budget is the time limit; 0 is two
// minutes. If the recording has none it fails with a *NoScheduleError.
func MinimizeFound(ctx context.Context, rec *record.Recording, budget time.Duration, files image.Options) (*FoundMinimal, error) {
	found, err := rec.Searched()
	if err != nil {
		return nil, err
	}
	switch {
	case rec.Manifest.Hunt != nil:
		return nil, &NoScheduleError{rec.Dir, "it was hunted, so its order is the schedule; Minimize makes that smaller"}
	case found == nil:
		return nil, &NoScheduleError{rec.Dir, "its threads ran as the kernel had them, and no search has found preemptions that its replay needs; 'diagnose replay' searches where it needs some, and 'diagnose hunt' makes recordings that have a schedule"}
	case found.Partial:
		return nil, &NoScheduleError{rec.Dir, "the search for a schedule has not reached the recorded end yet; 'diagnose replay --resume' continues it"}
	case len(found.Preemptions) == 0:
		return nil, &NoScheduleError{rec.Dir, "its replay needs no preemption"}
	}
	if budget == 0 {
		budget = longestMinimising
	}
	started := time.Now()
	m := &foundMinimiser{ctx: ctx, rec: rec, found: found, files: files, until: started.Add(budget),
		search: &search{rec: rec, opts: Options{Image: files}}}
	out := &FoundMinimal{Before: len(found.Preemptions)}
	same, err := m.reaches(found.Preemptions)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, errors.New("explore: the recording's schedule does not lead to the recorded end any more: its files have changed, or the search was made by another version")
	}
	if out.Preemptions, err = reduce(found.Preemptions, m.reaches); err != nil {
		return nil, err
	}
	if err := m.passing(out); err != nil {
		return nil, err
	}
	if m.late {
		out.LeftOut = fmt.Sprintf("after %v preemptions were left that may not be needed", budget)
	}
	out.Replays, out.Time = m.replays, time.Since(started).Seconds()
	if len(out.Preemptions) == out.Before {
		return out, nil
	}
	less := *found
	less.Preemptions = out.Preemptions
	return out, rec.SetFound(&less)
}

type foundMinimiser struct {
	ctx     context.Context
	rec     *record.Recording
	found   *record.Found
	files   image.Options
	search  *search
	until   time.Time
	replays int
	late    bool
}

// reaches reports whether a replay with these preemptions reaches the recorded end.
func (m *foundMinimiser) reaches(list []eventlog.Preemption) (bool, error) {
	if m.late = m.late || m.replays > 0 && time.Now().After(m.until); m.late {
		return false, nil
	}
	m.replays++
	o, err := m.search.replay(m.ctx, plan{timing: m.found.Timing, list: list}, true)
	if err != nil {
		return false, err
	}
	return o.same, m.ctx.Err()
}

// passing looks for a preemption without which the program passes. A replay without it diverges
// from the recording, and continues on its own.
func (m *foundMinimiser) passing(out *FoundMinimal) error {
	for i := len(out.Preemptions) - 1; i >= 0 && !m.late; i-- {
		list := slices.Concat([]eventlog.Preemption{}, out.Preemptions[:i], out.Preemptions[i+1:])
		m.replays++
		r, err := replay.Run(m.ctx, m.rec, replay.FreeRequest{Common: replay.Common{Timing: m.found.Timing, Preemptions: list, Image: m.files,
			Sleeping: sleeping, Computing: patience(m.rec)}})
		if m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		if err == nil && r.End == replay.EndExit && r.Status == 0 {
			out.Passes, out.Passing, out.Without, out.Otherwise = true, list, &out.Preemptions[i], nil
			return nil
		}
		out.Otherwise = append(out.Otherwise, fmt.Sprintf("without %v: %s", &out.Preemptions[i], ended(r, err)))
		m.late = time.Now().After(m.until)
	}
	return nil
}

// ended describes the end of a replay that did not pass.
func ended(r *replay.Result, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case r.Signal != 0:
		return fmt.Sprintf("the program dies of signal %d", r.Signal)
	}
	return fmt.Sprintf("the program ends (%s), status %d", r.End, r.Status)
}
