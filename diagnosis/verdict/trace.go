package verdict

import (
	"fmt"
	"path/filepath"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// traced is a recording with the accesses to the suspects.
type traced struct {
	rec  *record.Recording
	plan *watchtrace.Plan
	log  *evidence.AccessLog
	last uint64 // the failing thread's last event
}

// traceSuspects traces the targets in all recordings, the failing ones first.
func (w *work) traceSuspects(targets []watchtrace.Target) (failing, passing []traced, err error) {
	for i, rec := range w.Failing {
		own := targets
		if i > 0 {
			own = w.resolved(rec, targets)
		}
		t, err := w.traceOne(fmt.Sprintf("failing run %d of %d", i+1, len(w.Failing)), rec, own)
		if err != nil {
			return nil, nil, err
		}
		w.foregone(t.log, rec.Manifest.Outcome.Thread)
		failing = append(failing, t)
	}
	for i, rec := range w.Passing {
		t, err := w.traceOne(fmt.Sprintf("passing run %d of %d", i+1, len(w.Passing)), rec, w.resolved(rec, targets))
		if err != nil {
			return nil, nil, err
		}
		passing = append(passing, t)
	}
	return failing, passing, nil
}

func (w *work) traceOne(what string, rec *record.Recording, targets []watchtrace.Target) (traced, error) {
	t := traced{rec: rec}
	var err error
	// Interleavings are looked for, and proved by experiments: some that are known
	// are more than none. That nobody else was there does not follow.
	opts := w.options(what)
	opts.Known = true
	if t.plan, t.log, err = w.traceAll(rec, targets, opts); err != nil {
		return t, err
	}
	w.stacks.ofFrames(t.log)
	locks := w.stacks.locks
	if len(locks) > 0 && rec != w.rec { // their addresses may differ between runs
		locks = w.resolved(rec, locks)
	}
	nameLocks(t.log, locks)
	for e, err := range rec.Log.Events(rec.Manifest.Outcome.Thread) {
		if err != nil {
			break // what is missing is behind all that is known
		}
		t.last = e.Ordinal
	}
	return t, nil
}

// traceAll traces the targets; the report says what that covers.
func (w *work) traceAll(rec *record.Recording, targets []watchtrace.Target, opts watchtrace.Options) (*watchtrace.Plan, *evidence.AccessLog, error) {
	plan, err := watchtrace.NewPlan(rec, targets, opts)
	if err != nil {
		return nil, nil, err
	}
	log, err := plan.Trace(w.progress.ctx)
	if err != nil {
		return plan, nil, err
	}
	w.covered(log)
	return plan, log, nil
}

// resolved finds the targets where another run has them. Globals stay where they are, a
// heap object is that of the same allocation, a variable on a stack that of the same
// function's frame; what else was reached through pointers is
// where these lead at the other run's end. What is not there is not traced there.
func (w *work) resolved(rec *record.Recording, targets []watchtrace.Target) []watchtrace.Target {
	list := slices.Clone(targets)
	path, err := rec.Core()
	if err != nil {
		w.stacks.placeIn(list, rec, nil, err)
		return list
	}
	p, err := image.OpenCore(path, w.Image)
	if err != nil {
		w.progress.limit(evidence.Limit{Code: evidence.LimitFailedPart, Subject: rec.Dir, Reason: err.Error()})
		w.stacks.placeIn(list, rec, nil, err)
		return list
	}
	defer p.Close()
	here, err := watchtrace.NewAllocations(w.Process)
	if err != nil {
		here = nil // no object is known then
	}
	there, errThere := watchtrace.NewAllocations(p)
	for i, t := range targets {
		o := objectOf(w.Process, w.Object, t)
		switch _, onStack := w.stacks.places[t.Name]; {
		case onStack:
		case o != nil && here != nil && errThere == nil:
			addr, err := here.Same(o, there)
			if list[i].Addr = addr + (t.Addr - o.Addr); err != nil {
				list[i].Absent = fmt.Sprintf("%s: %v", filepath.Base(rec.Dir), err)
			}
		case w.Process.ModuleAt(t.Addr) == nil:
			found, err := watchtrace.Resolve(p, t.Name)
			switch {
			case err != nil && p.MappingAt(t.Addr) != nil:
				// Stacks, and what has no name, lie where they do in each run.
			case err != nil:
				list[i].Absent = fmt.Sprintf("%s: %v", filepath.Base(rec.Dir), err)
			case len(found) != 1 || found[0].Size != t.Size:
				list[i].Absent = fmt.Sprintf("%s: %s is something else there", filepath.Base(rec.Dir), t.Name)
			default:
				list[i].Addr = found[0].Addr
			}
		}
	}
	if len(w.stacks.places) > 0 { // or the whole log would be read for nothing
		frames, err := outermostFrames(p, rec)
		w.stacks.placeIn(list, rec, frames, err)
	}
	return list
}

// objectOf is the heap object that a target is in; nil: none.
func objectOf(p *image.Process, objects func(evidence.Addr) *evidence.HeapObject, t watchtrace.Target) *evidence.HeapObject {
	if objects == nil || p.ModuleAt(t.Addr) != nil {
		return nil
	}
	o := objects(t.Addr)
	if o == nil || t.Addr < o.Addr || t.Addr >= o.Addr+evidence.Addr(o.Size) {
		return nil
	}
	return o
}
