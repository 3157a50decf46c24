package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"diagnose/agent"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
)

// recordings are the recordings of a request, with facts about how the first run ended.
type recordings struct {
	failing, passing []*record.Recording
	// opened are those that were opened here, to be closed.
	opened []*record.Recording
	// given: the request names a process, so the recordings do not say which one is read.
	given bool
	// exit is how the recorded process ended, if it ended itself with a status.
	exit *record.Outcome
	// run is the whole recording if failing has only a part of it, up to moment; nil if failing has
	// the recordings as they are.
	run *record.Recording
	// moment is the moment at which the run is declared to have failed; nil: at its end, or it
	// failed by itself.
	moment *evidence.Moment
	// cut: there is no core of the recorded process's end.
	cut bool
}

// openRecordings opens the recordings of the request, and puts the core of the first into the
// request if it has none.
func openRecordings(ctx context.Context, req *Request) (*recordings, error) {
	rs := &recordings{}
	err := rs.open(ctx, req)
	if err != nil {
		rs.closeRecordings()
		return nil, err
	}
	return rs, nil
}

func (rs *recordings) open(ctx context.Context, req *Request) error {
	for _, dirs := range []struct {
		from []string
		to   *[]*record.Recording
	}{{req.Recordings, &rs.failing}, {req.Passing, &rs.passing}} {
		for _, dir := range dirs.from {
			r, err := rs.openOne(ctx, dir, req.Opened)
			if err != nil {
				return fmt.Errorf("recording %s: %w", dir, err)
			}
			*dirs.to = append(*dirs.to, r)
		}
	}
	if len(rs.failing) == 0 {
		return nil
	}
	rs.declarePlace(req.FailedAt)
	if err := verdict.Check(rs.failing, rs.passing); err != nil {
		return err
	}
	if req.Core != "" {
		rs.given = true
		return nil
	}
	if rs.atMoment() {
		return nil
	}
	if o := &rs.failing[0].Manifest.Outcome; o.Kind == record.OutcomeExit || o.Declared != nil {
		rs.exit = o
	}
	core, err := rs.failing[0].Core()
	if errors.Is(err, os.ErrNotExist) {
		return rs.withoutCore()
	}
	req.Core = core
	return err
}

// openOne takes a recording from those that the caller opened, or opens it. One that is named
// twice is opened for the second time.
func (rs *recordings) openOne(ctx context.Context, dir string, opened map[string]*record.Recording) (*record.Recording, error) {
	if r := opened[dir]; r != nil && !slices.Contains(rs.failing, r) && !slices.Contains(rs.passing, r) {
		return r, nil
	}
	r, err := record.OpenContext(ctx, dir)
	if err == nil {
		rs.opened = append(rs.opened, r)
	}
	return r, err
}

// ExecutedUnrecorded says why a recording ends where its process executed another program without a
// recording. The recording library enters a program by LD_PRELOAD.
const ExecutedUnrecorded = "it ends where its process executed another program, which was not recorded; " +
	"if it was started by env or a script with another LD_PRELOAD, record that program itself"

func (rs *recordings) closeRecordings() {
	for _, r := range rs.opened {
		r.Close()
	}
}

// declarePlace notes, in memory alone, the place at which the first recording failed according to
// the user.
func (rs *recordings) declarePlace(place string) {
	if place != "" {
		rs.failing[0].Manifest.Outcome.Declared = &record.Declared{Rule: record.RulePlace, Place: record.Text(place)}
	}
}

// declared is the rule by which the first recording's run failed although it ended well; nil if it
// has none.
func (rs *recordings) declared() *record.Declared {
	if len(rs.failing) == 0 {
		return nil
	}
	return rs.failing[0].Manifest.Outcome.Declared
}

// atMoment reports whether the failure is at a moment of the run, and not at its end.
func (rs *recordings) atMoment() bool {
	d := rs.declared()
	return d != nil && (d.Rule == record.RulePlace || d.Rule == record.RuleOutput) && !rs.given
}

// withoutCore has the end of the recording replayed, if there is anything to replay.
func (rs *recordings) withoutCore() error {
	rec := rs.failing[0]
	switch {
	case rec.Manifest.Outcome.Kind == record.OutcomeExec:
		return fmt.Errorf("recording %s: %s", rec.Dir, ExecutedUnrecorded)
	case len(rec.Log.Threads()) == 0:
		return fmt.Errorf("recording %s: it has no core and no events, so what failed is not known; its run: %v", rec.Dir, &rec.Manifest.Outcome)
	}
	rs.cut = true
	return nil
}

// markExited makes the thread that ended the process with a status the failing one, if the process
// itself names none.
func (rs *recordings) markExited(p *image.Process) {
	if rs.exit != nil && p.Failing < 0 {
		p.Failing = slices.IndexFunc(p.Threads, func(t image.Thread) bool { return t.Ref.TID == rs.exit.TID })
	}
}

// numberReplayed gives a replayed process the process and thread ids of the recorded one, and
// removes the threads that have ended.
func (rs *recordings) numberReplayed(p *image.Process) error {
	rec := rs.failing[0]
	summary, err := rec.Log.Summarize()
	if err != nil {
		return fmt.Errorf("recording %s: %w", rec.Dir, err)
	}
	p.Program.PID = rec.Manifest.PID
	if p.Program.Command == "" {
		// The kernel keeps 15 bytes of it (TASK_COMM_LEN).
		name := filepath.Base(string(rec.Manifest.Program.Path))
		p.Program.Command = name[:min(len(name), 15)]
	}
	for i := range p.Threads {
		ref := &p.Threads[i].Ref
		for _, t := range summary.Threads {
			if int(t.Index) == ref.Number && t.TID != 0 {
				ref.TID, ref.Recorded = int(t.TID), ref.Number
			}
		}
	}
	removeEnded(p)
	return nil
}

// removeEnded removes the threads that have ended for the program, though the kernel still had them
// when a replay was stopped: the recording library only calls exit(2) after that.
func removeEnded(p *image.Process) {
	left := slices.DeleteFunc(slices.Clone(p.Threads), func(t image.Thread) bool {
		raw, err := image.Struct[agent.RawRThread](p, evidence.Addr(agent.RThreadAddress(uint32(t.Ref.Recorded))))
		return t.Ref.Recorded != 0 && err == nil && raw.State == agent.REnded
	})
	if len(left) > 0 {
		p.Threads = left
	}
}

// numberThreads gives the threads of a recorded process their numbers in the recording, which
// moments and experiments use. Without the recording the numbers are read from the process's
// memory, so that a report of the core alone has the same numbers.
func (rs *recordings) numberThreads(p *image.Process) error {
	recorded := map[int]int{}
	switch {
	case len(rs.failing) == 0:
		recorded = recordedNumbers(p)
	case p.Program.PID == rs.failing[0].Manifest.PID:
		summary, err := rs.failing[0].Log.Summarize()
		if err != nil {
			return fmt.Errorf("recording %s: %w", rs.failing[0].Dir, err)
		}
		for _, t := range summary.Threads {
			recorded[int(t.TID)] = int(t.Index)
		}
	}
	threads := p.Threads
	if slices.ContainsFunc(threads, func(t image.Thread) bool { return recorded[t.Ref.TID] == 0 }) {
		return nil // it is no recorded process, or the log was cut off before one of them began
	}
	for i := range threads {
		ref := &threads[i].Ref
		ref.Number, ref.Recorded = recorded[ref.TID], recorded[ref.TID]
	}
	return nil
}

// recordedNumbers reads the numbers of a process's threads from the data of the recording library
// (agent/src/record.h, dg_rthread), by their ids. A thread that is not found there is missing. The
// target controls the memory: a number counts only if it is that of its slot, and the first failed
// read ends the search.
func recordedNumbers(p *image.Process) map[int]int {
	numbers, ours := map[int]int{}, map[int]bool{}
	for i := range p.Threads {
		ours[p.Threads[i].Ref.TID] = true
	}
	for index := uint32(1); index < agent.RThreads && len(numbers) < len(ours); index++ {
		t, err := image.Struct[agent.RawRThread](p, evidence.Addr(agent.RThreadAddress(index)))
		if err != nil {
			break
		}
		if tid := int(t.TID); t.Index == index && ours[tid] && numbers[tid] == 0 {
			numbers[tid] = int(index)
		}
	}
	return numbers
}

// completeOutcome completes the first recording's outcome, in memory alone, by the thread with
// which a replay ended. Later replays are compared with that.
func (rs *recordings) completeOutcome(t *image.Thread) evidence.Limit {
	rec := rs.failing[0]
	o := &rec.Manifest.Outcome
	code, text := evidence.LimitNoCore, noCore
	if o.Kind != record.OutcomeSignal {
		code, text = evidence.LimitEndUnknown, fmt.Sprintf("how the recorded process ended is not in its recording (%v); the failure is what a replay reaches after the last event", o)
		pc := t.Registers.PC()
		*o = record.Outcome{Kind: record.OutcomeSignal, Signal: t.Signal.Number, Thread: uint32(t.Ref.Number), TID: t.Ref.TID, PC: &pc}
		if t.Signal.HasAddr {
			o.FaultAddr = &t.Signal.Addr
		}
	}
	return evidence.Limit{Code: code, Subject: rec.Dir, Reason: text}.Worded()
}

// stuck reports whether the process was ended because none of its threads could continue.
func (rs *recordings) stuck(p *image.Process) bool {
	if !rs.ofRecording(p) {
		return false
	}
	o := rs.failing[0].Manifest.Outcome.Stuck
	return o == record.StuckBlocked || o == record.StuckCycle
}

// ofRecording reports whether the process is that of the recording, and its threads are known by
// their numbers there.
func (rs *recordings) ofRecording(p *image.Process) bool {
	return len(rs.failing) > 0 && p.Program.PID == rs.failing[0].Manifest.PID && len(p.Threads) > 0 && p.Threads[0].Ref.Recorded != 0
}

// refusedCalls are the system calls that the recorder refused; none if the process is read without
// the recording.
func (rs *recordings) refusedCalls() (calls []evidence.RefusedCall) {
	if len(rs.failing) == 0 || rs.given || rs.atMoment() {
		return nil
	}
	list := rs.failing[0].Manifest.Refused
	for i := range list {
		r := &list[i]
		why := r.Why()
		if r.Filter() {
			why = "the recorder's own calls would be filtered"
		}
		calls = append(calls, evidence.RefusedCall{Call: r.Call, Error: evidence.ErrorName(r.Error), Why: why, Moment: r.Moment()})
	}
	return calls
}
