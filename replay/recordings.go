package replay

import (
	"syscall"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// recordings are the recordings that are replayed: the requested one, after its ancestors by fork,
// whose replays lead up to it.
type recordings struct {
	rec    *record.Recording
	stages []*stage
	step   int            // index of the stage that is replayed now
	core   *image.Process // the recorded end; nil if the recording has none
	// ends are the core's threads, once they were read.
	ends map[uint32]*coreThread
}

// stage returns the recording that is being replayed.
func (r *recordings) stage() *stage { return r.stages[r.step] }

// last reports whether the recording that is being replayed is the requested one, not an ancestor
// by fork.
func (r *recordings) last() bool { return r.step == len(r.stages)-1 }

func (r *recordings) close() {
	for _, s := range r.stages {
		s.close()
	}
	if r.core != nil {
		r.core.Close()
	}
}

// recordedThreads returns the threads at the recorded end; none if the recording has no core.
func (r *recordings) recordedThreads() map[uint32]*coreThread {
	if r.ends == nil && r.core != nil {
		r.ends = coreThreads(r.core)
	}
	return r.ends
}

// unbegun returns the recorded threads that ended before their first event.
func (r *recordings) unbegun() []uint32 {
	var found []uint32
	for i, end := range r.recordedThreads() {
		if end.raw.State == agent.RStarting && end.raw.Inside == 0 {
			found = append(found, i)
		}
	}
	return found
}

// endsWith reports whether the recorded process ended with this signal in the thread.
func (r *recordings) endsWith(t *tracee.Thread, signal syscall.Signal) bool {
	outcome := &r.stage().rec.Manifest.Outcome
	return r.last() && outcome.Signal == int(signal) && (outcome.Thread == t.Index || outcome.Thread == 0)
}

// endsShort reports whether the process continued after the last event, and its end is not known,
// or may be after events that the log has lost.
func (r *recordings) endsShort() bool {
	rec := r.stage().rec
	switch rec.Manifest.Outcome.Kind {
	case record.OutcomeCut, record.OutcomeRunning:
		return r.last()
	}
	return r.last() && r.core == nil && rec.Log.Cut() != nil
}

// faultOutcome distinguishes a failure of an instruction from a signal that was sent. A siginfo
// does not have an address that is not canonical; then the core says that the signal is from the
// kernel.
func (r *recordings) faultOutcome() bool {
	if r.stage().rec.Manifest.Outcome.FaultAddr != nil {
		return true
	}
	if r.core == nil || !r.last() {
		return false
	}
	failing := r.core.FailingThread()
	return failing != nil && failing.Signal != nil && failing.Signal.Code == tracee.FromKernel && tracee.IsFault(syscall.Signal(failing.Signal.Number))
}

// asRecorded reports whether the recorded process ended with this signal.
func (r *recordings) asRecorded(t *tracee.Thread, signal int) bool {
	o := &r.rec.Manifest.Outcome
	return o.Kind == record.OutcomeSignal && o.Signal == signal && (o.Thread == 0 || o.Thread == t.Index)
}

// checkPoints checks that the engine supports preemptions, if there are any.
func (r *recordings) checkPoints(control *agent.RawControl) error {
	for _, s := range r.stages {
		if len(s.preemptions) > 0 && control.PointAble != 1 {
			return tracee.Inputf("replay: the library that recorded %s cannot preempt its threads: record it again", s.rec.Dir)
		}
	}
	return nil
}

// leftOver counts the events that the replay should have reached and has not. Futex calls may
// remain, and notes belong to no call of the program.
func (r *recordings) leftOver(p *tracee.Process, reordered bool) (uint64, error) {
	control, err := p.ReadControl()
	if err != nil || control.Consumed >= r.stage().events || reordered {
		return 0, err
	}
	left := uint64(0)
	done := map[uint32]uint64{}
	for e, err := range r.stage().rec.Log.Ordered() {
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

// nextEvent returns the thread's next event in the log; nil if there is none.
func (r *recordings) nextEvent(p *tracee.Process, t *tracee.Thread) (*eventlog.Event, error) {
	known, err := p.ReadThread(t.Index)
	if err != nil {
		return nil, err
	}
	if known.Next >= known.NextEnd {
		return nil, nil
	}
	e, err := r.stage().eventAt(known.Next)
	if err != nil {
		return nil, err
	}
	e.Thread, e.Ordinal = t.Index, known.Ordinal+1
	return e, nil
}
