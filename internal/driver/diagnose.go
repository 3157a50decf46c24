package driver

import (
	"context"
	"errors"
	"fmt"
	"os"

	"diagnose/evidence"
	"diagnose/record"
	"diagnose/verdict"
)

// openRecordings opens those that the request names, and takes the core from the
// first if none was given.
func (a *analysis) openRecordings() error {
	for _, dirs := range []struct {
		from []string
		to   *[]*record.Recording
	}{{a.req.Recordings, &a.failing}, {a.req.Passing, &a.passing}} {
		for _, dir := range dirs.from {
			r, err := record.Open(dir)
			if err != nil {
				return fmt.Errorf("recording %s: %w", dir, err)
			}
			*dirs.to = append(*dirs.to, r)
		}
	}
	if len(a.failing) == 0 {
		return nil
	}
	if err := verdict.Check(a.failing, a.passing); err != nil {
		return err
	}
	if a.req.Core != "" {
		return nil
	}
	core, err := a.failing[0].Core()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("recording %s: it has no core, so what failed is not known; its run: %v", a.failing[0].Dir, &a.failing[0].Manifest.Outcome)
	}
	a.req.Core = core
	return err
}

func (a *analysis) closeRecordings() {
	for _, list := range [][]*record.Recording{a.failing, a.passing} {
		for _, r := range list {
			r.Close()
		}
	}
}

// diagnose goes on from what the core tells to the cause, by replays.
func (a *analysis) diagnose(ctx context.Context) error {
	if len(a.failing) == 0 {
		return nil
	}
	d, err := verdict.Diagnose(ctx, verdict.Input{Case: a.result, Process: a.process, Blame: a.blame, Failing: a.failing, Passing: a.passing,
		Hops: a.req.Hops, Replays: a.req.Replays, Object: a.objectAt, Image: a.imageOptions(), Progress: a.req.Progress})
	if err != nil {
		return err
	}
	a.result.Diagnosis = d
	return a.sameThreads()
}

// sameThreads joins the two ways in which the core and the recording count and
// name threads. Numbers of moments and experiments are the recording's, so the
// stacks are told theirs; the names are the core's, where it has the thread.
func (a *analysis) sameThreads() error {
	summary, err := a.failing[0].Log.Summarize()
	if err != nil {
		return fmt.Errorf("recording %s: %w", a.failing[0].Dir, err)
	}
	recorded := map[int]int{}
	for _, t := range summary.Threads {
		recorded[int(t.TID)] = int(t.Index)
	}
	named := map[int]evidence.ThreadRef{}
	for i := range a.result.Stacks {
		for j := range a.result.Stacks[i].Threads {
			t := &a.result.Stacks[i].Threads[j]
			t.Recorded = recorded[t.TID]
			named[t.TID] = *t
		}
	}
	name := func(x *evidence.SeenAccess) {
		if x == nil {
			return
		}
		if t, found := named[x.Thread.TID]; found && t.Recorded == x.Thread.Number {
			x.Thread.Name, x.Thread.Start = t.Name, t.Start
		}
	}
	for i := range a.result.Diagnosis.Causes {
		c := &a.result.Diagnosis.Causes[i]
		for j := range c.Story {
			name(c.Story[j].Access)
		}
		if c.Interleaving != nil {
			for j := range c.Interleaving.Failing {
				name(&c.Interleaving.Failing[j])
			}
		}
	}
	return nil
}

// objectAt tells of the heap object at an address.
func (a *analysis) objectAt(addr evidence.Addr) *evidence.HeapObject {
	if a.heap == nil {
		return nil
	}
	near, found, err := a.heap.Nearest(addr)
	if err != nil || !found {
		return nil
	}
	return a.heap.object(&near.Object)
}
