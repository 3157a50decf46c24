package recorded

import (
	"sync/atomic"
	"syscall"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/internal/siginfo"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// Recordings are the recordings that are replayed: the requested one, after its ancestors by fork,
// whose replays lead up to it.
type Recordings struct {
	Rec    *record.Recording
	Stages []*Stage
	Step   int            // index of the stage that is replayed now
	Core   *image.Process // the recorded end; nil if the recording has none
	// ends are the core's threads, once they were read.
	ends map[uint32]*Thread
	// users counts those who have the files in common; nil: there is one.
	users *atomic.Int32
}

// Share returns the recordings for another replay, with the files in common and without the core, which is for one replay alone. Both are
// to be closed.
func (r *Recordings) Share() *Recordings {
	if r.users == nil {
		r.users = new(atomic.Int32)
		r.users.Add(1)
	}
	r.users.Add(1)
	other := *r
	other.Core, other.ends, other.Stages = nil, nil, nil
	for _, s := range r.Stages {
		stage := *s
		other.Stages = append(other.Stages, &stage)
	}
	return &other
}

// Stage returns the recording that is being replayed.
func (r *Recordings) Stage() *Stage { return r.Stages[r.Step] }

// IsLast reports whether the recording that is being replayed is the requested one, not an ancestor
// by fork.
func (r *Recordings) IsLast() bool { return r.Step == len(r.Stages)-1 }

// Close closes the core, and the files unless others have them in common.
func (r *Recordings) Close() {
	if r.Core != nil {
		r.Core.Close()
	}
	if r.users != nil && r.users.Add(-1) > 0 {
		return
	}
	for _, s := range r.Stages {
		s.close()
	}
}

// RecordedThreads returns the threads at the recorded end; none if the recording has no core.
func (r *Recordings) RecordedThreads() map[uint32]*Thread {
	if r.ends == nil && r.Core != nil {
		r.ends = Threads(r.Core)
	}
	return r.ends
}

// Unbegun returns the recorded threads that ended before their first event.
func (r *Recordings) Unbegun() []uint32 {
	var found []uint32
	for i, end := range r.RecordedThreads() {
		if end.Raw.State == agent.RStarting && end.Raw.Inside == 0 {
			found = append(found, i)
		}
	}
	return found
}

// EndsWith reports whether the recorded process ended with this signal in the thread.
func (r *Recordings) EndsWith(t *tracee.Thread, signal syscall.Signal) bool {
	outcome := &r.Stage().Rec.Manifest.Outcome
	return r.IsLast() && outcome.Signal == int(signal) && (outcome.Thread == t.Index || outcome.Thread == 0)
}

// EndsShort reports whether the process continued after the last event, and its end is not known,
// or may be after events that the log has lost.
func (r *Recordings) EndsShort() bool {
	rec := r.Stage().Rec
	switch rec.Manifest.Outcome.Kind {
	case record.OutcomeCut, record.OutcomeRunning:
		return r.IsLast()
	}
	return r.IsLast() && r.Core == nil && rec.Log.Cut() != nil
}

// FaultOutcome distinguishes a failure of an instruction from a signal that was sent. A siginfo
// does not have an address that is not canonical; then the core says that the signal is from the
// kernel.
func (r *Recordings) FaultOutcome() bool {
	if r.Stage().Rec.Manifest.Outcome.FaultAddr != nil {
		return true
	}
	if r.Core == nil || !r.IsLast() {
		return false
	}
	failing := r.Core.FailingThread()
	return failing != nil && failing.Signal != nil && failing.Signal.Code == siginfo.Kernel && tracee.IsFault(syscall.Signal(failing.Signal.Number))
}

// AsRecorded reports whether the recorded process ended with this signal.
func (r *Recordings) AsRecorded(t *tracee.Thread, signal int) bool {
	o := &r.Rec.Manifest.Outcome
	return o.Kind == record.OutcomeSignal && o.Signal == signal && (o.Thread == 0 || o.Thread == t.Index)
}

// CheckPoints checks that the engine supports preemptions, if there are any.
func (r *Recordings) CheckPoints(control *agent.RawControl) error {
	for _, s := range r.Stages {
		if len(s.Preemptions) > 0 && control.PointAble != 1 {
			return tracee.Inputf("replay: the library that recorded %s cannot preempt its threads: record it again", s.Rec.Dir)
		}
	}
	return nil
}

// LeftOver counts the events that the replay should have reached and has not. Futex calls may
// remain, and notes belong to no call of the program.
func (r *Recordings) LeftOver(p *tracee.Process, reordered bool) (uint64, error) {
	control, err := p.ReadControl()
	if err != nil || control.Consumed >= r.Stage().Events || reordered {
		return 0, err
	}
	left := uint64(0)
	done := map[uint32]uint64{}
	for e, err := range r.Stage().Rec.Log.Ordered() {
		if err != nil {
			break // the image does not have the later events either
		}
		if _, known := done[e.Thread]; !known {
			done[e.Thread] = 0
			if known, err := p.ReadThread(e.Thread); err == nil {
				done[e.Thread] = known.Ordinal
			}
		}
		if e.Ordinal > done[e.Thread] && e.Flags&agent.EventSoft == 0 && e.Kind != eventlog.KindLimit {
			left++
		}
	}
	return left, nil
}

// NextEvent returns the thread's next event in the log; nil if there is none.
func (r *Recordings) NextEvent(p *tracee.Process, t *tracee.Thread) (*eventlog.Event, error) {
	known, err := p.ReadThread(t.Index)
	if err != nil {
		return nil, err
	}
	if known.Next >= known.NextEnd {
		return nil, nil
	}
	e, err := r.Stage().EventAt(known.Next)
	if err != nil {
		return nil, err
	}
	e.Thread, e.Ordinal = t.Index, known.Ordinal+1
	return e, nil
}
