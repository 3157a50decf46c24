package watchtrace

import (
	"context"
	"runtime"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
)

// Options of a trace. The zero value traces with the best means of the machine,
// on all processors, within the default budgets.
type Options struct {
	// Backend is the means of tracing; empty: the best that works here.
	Backend replay.Backend
	// Words, Passes and Hits are budgets: of words to watch, of replays, and of
	// hits in one pass, which ends there. 0: DefaultWords, DefaultPasses,
	// DefaultHits.
	Words, Passes int
	Hits          uint64
	// PageStops is a budget, too, of the stops in one pass at protected pages, where the machine's debug registers stop no
	// thread; only with Known. 0: DefaultPageStops.
	PageStops uint64
	// Known traces words that are beyond the budgets or accessed too often, and those in pages that
	// are, by the instructions that are known to access them. For such a variable
	// (evidence.Watched.Instructions) one must not conclude that nothing else
	// accessed it.
	Known bool
	// From and Until bound the part of the recording that is asked about; nil: its start, its end. Passes begin at the start in
	// any case, so that the log has what happened before From (Plan.Since), and end at Until.
	From, Until *evidence.Moment
	// LockOrder also traces which locks threads take while they hold others
	// (AccessLog.Acquisitions), by passes over the locks themselves. The threads
	// that wait for a lock at the end are found in any case.
	LockOrder bool
	// Processes is how many replays run at once; 0: one per processor.
	Processes int
	Image     image.Options
	// Progress, if set, is called from time to time, by one goroutine at a
	// time.
	Progress func(Progress)
}

// The budgets.
const (
	DefaultWords  = 256
	DefaultPasses = 64
	DefaultHits   = 2_000_000
	// DefaultPageStops take some two seconds. What else is in a page counts as well, so a variable that is accessed rarely may
	// be in a busy one.
	DefaultPageStops = 5_000
)

// Progress is the progress of a trace.
type Progress struct {
	// Done of Passes have ended; Hits counts the hits of all passes so far.
	Done, Passes int
	Hits         uint64
}

func (o *Options) setDefaults() {
	if o.PageStops == 0 {
		o.PageStops = DefaultPageStops
	}
	if o.Words == 0 {
		o.Words = DefaultWords
	}
	if o.Passes == 0 {
		o.Passes = DefaultPasses
	}
	if o.Hits == 0 {
		o.Hits = DefaultHits
	}
	if o.Processes == 0 {
		o.Processes = runtime.NumCPU()
	}
}

// Trace plans the passes over the targets, replays them and merges the log. The
// log's Variables give the reasons for variables that were not traced.
func Trace(ctx context.Context, rec *record.Recording, targets []Target, opts Options) (*evidence.AccessLog, error) {
	plan, err := NewPlan(rec, targets, opts)
	if err != nil {
		return nil, err
	}
	return plan.Trace(ctx)
}
