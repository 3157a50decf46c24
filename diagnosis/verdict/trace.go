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

// tracer makes the passes over recordings that see the accesses to targets.
type tracer struct {
	in       *Input
	rec      *record.Recording
	out      *evidence.Diagnosis
	progress *progress
	stacks   *stackVariables
}

// runs traces the targets in all recordings, the failing ones first.
func (tr *tracer) runs(targets []watchtrace.Target) (failing, passing []traced, err error) {
	for i, rec := range tr.in.Failing {
		own := targets
		if i > 0 {
			own = tr.resolved(rec, targets)
		}
		t, err := tr.run(fmt.Sprintf("failing run %d of %d", i+1, len(tr.in.Failing)), rec, own)
		if err != nil {
			return nil, nil, err
		}
		tr.foregone(t.log, rec.Manifest.Outcome.Thread)
		failing = append(failing, t)
	}
	for i, rec := range tr.in.Passing {
		t, err := tr.run(fmt.Sprintf("passing run %d of %d", i+1, len(tr.in.Passing)), rec, tr.resolved(rec, targets))
		if err != nil {
			return nil, nil, err
		}
		passing = append(passing, t)
	}
	return failing, passing, nil
}

func (tr *tracer) run(what string, rec *record.Recording, targets []watchtrace.Target) (traced, error) {
	t := traced{rec: rec}
	var err error
	// Interleavings are looked for, and proved by experiments: some that are known
	// are more than none. That nobody else was there does not follow.
	opts := tr.options(what)
	opts.Known = true
	if t.plan, t.log, err = tr.trace(rec, targets, opts); err != nil {
		return t, err
	}
	tr.stacks.ofFrames(t.log)
	locks := tr.stacks.locks
	if len(locks) > 0 && rec != tr.rec { // their addresses may differ between runs
		locks = tr.resolved(rec, locks)
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

// trace traces the targets; the report says what that covers.
func (tr *tracer) trace(rec *record.Recording, targets []watchtrace.Target, opts watchtrace.Options) (*watchtrace.Plan, *evidence.AccessLog, error) {
	plan, err := watchtrace.NewPlan(rec, targets, opts)
	if err != nil {
		return nil, nil, err
	}
	log, err := plan.Trace(tr.progress.ctx)
	if err != nil {
		return plan, nil, err
	}
	tr.covered(log)
	return plan, log, nil
}

// options are those of the passes over a recording.
func (tr *tracer) options(what string) watchtrace.Options {
	return watchtrace.Options{Image: tr.in.Image, Hits: tr.in.Hits, Progress: func(p watchtrace.Progress) {
		tr.progress.say("%s: pass %d of %d, %d accesses", what, min(p.Done+1, p.Passes), p.Passes, p.Hits)
	}}
}

// covered adds what passes saw to the coverage.
func (tr *tracer) covered(log *evidence.AccessLog) {
	c := &tr.out.Coverage
	for _, v := range log.Variables {
		if v.Pass > 0 {
			v.Pass += c.Passes
		}
		tr.out.Watched = append(tr.out.Watched, v)
	}
	c.Passes += log.Coverage.Passes
	c.Hits += log.Coverage.Hits
	c.Lost += log.Coverage.Lost
	c.Backend = log.Coverage.Backend
	for _, l := range log.Coverage.Limits {
		tr.progress.limit(l)
	}
}

// resolved finds the targets where another run has them. Globals stay where they are, a
// heap object is that of the same allocation, a variable on a stack that of the same
// function's frame; what else was reached through pointers is
// where these lead at the other run's end. What is not there is not traced there.
func (tr *tracer) resolved(rec *record.Recording, targets []watchtrace.Target) []watchtrace.Target {
	list := slices.Clone(targets)
	path, err := rec.Core()
	if err != nil {
		tr.stacks.placeIn(list, rec, nil, err)
		return list
	}
	p, err := image.OpenCore(path, tr.in.Image)
	if err != nil {
		tr.progress.limit(evidence.Limit{Code: evidence.LimitFailedPart, Subject: rec.Dir, Reason: err.Error()})
		tr.stacks.placeIn(list, rec, nil, err)
		return list
	}
	defer p.Close()
	here, err := watchtrace.NewAllocations(tr.in.Process)
	if err != nil {
		here = nil // no object is known then
	}
	there, errThere := watchtrace.NewAllocations(p)
	for i, t := range targets {
		o := objectOf(tr.in.Process, tr.in.Object, t)
		switch _, onStack := tr.stacks.places[t.Name]; {
		case onStack:
		case o != nil && here != nil && errThere == nil:
			addr, err := here.Same(o, there)
			if list[i].Addr = addr + (t.Addr - o.Addr); err != nil {
				list[i].Absent = fmt.Sprintf("%s: %v", filepath.Base(rec.Dir), err)
			}
		case tr.in.Process.ModuleAt(t.Addr) == nil:
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
	if len(tr.stacks.places) > 0 { // or the whole log would be read for nothing
		frames, err := outermostFrames(p, rec)
		tr.stacks.placeIn(list, rec, frames, err)
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
