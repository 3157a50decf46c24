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
