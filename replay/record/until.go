package record

import (
	"fmt"
	"os"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// Until returns the recording as if it had been cut off: with all events before that of a
// Moment, and with that event if inclusive is set. It has no core, shares the files of r, and
// is closed by closing r.
func (r *Recording) Until(at evidence.Moment, inclusive bool) (*Recording, error) {
	events, found := uint64(0), false
	var tid int
	for e, err := range r.Log.Ordered() {
		if err != nil && !eventlog.Damaged(err) {
			return nil, err
		}
		if err != nil {
			break
		}
		if e.Kind == eventlog.KindStart && e.Thread == at.Thread && len(e.Args) >= 2 {
			tid = int(e.Args[1])
		}
		if found = e.Thread == at.Thread && e.Ordinal == at.Ordinal; found && !inclusive {
			break
		}
		events++
		if found {
			break
		}
	}
	if !found || events == 0 {
		return nil, fmt.Errorf("record: %s has no event %d of thread %d", r.Dir, at.Ordinal, at.Thread)
	}
	m := *r.Manifest
	m.Outcome = Outcome{Kind: OutcomeCut, Thread: at.Thread, TID: tid, Declared: r.Manifest.Outcome.Declared}
	return &Recording{Dir: r.Dir, Manifest: &m, Log: r.Log.First(events), part: true}, nil
}

// coreOfPart: the end that the core is of comes later.
func (r *Recording) coreOfPart() error {
	if r.part {
		return fmt.Errorf("record: a part of %s: %w", r.Dir, os.ErrNotExist)
	}
	return nil
}
