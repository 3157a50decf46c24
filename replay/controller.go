package replay

import (
	"context"
	"sync"

	"diagnose/replay/breakpoint"
	"diagnose/replay/loadguard"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
	"diagnose/replay/watchpoint"
)

// controller replays one process. It passes each stop to the part that handles it.
type controller struct {
	*tracee.Process
	*recorded.Recordings
	*runner
	*judge
	ctx     context.Context
	request parts
	attempt *attempt
	result  *Result

	placer  *breakpoint.Breakpoints
	early   *ptrace.Stop     // the first stop of a process whose parent has not reported it yet
	loading *loadguard.Guard // until DG_TRAP_HELLO
	watch   *watchdog
	// tracing handles the watches; nil if there are none.
	tracing *watchpoint.Tracing
	// mu is held while a stop is handled, or accesses that need no stop.
	mu sync.Mutex
	// allStopped: the inspection of a hit stopped the other threads, too.
	allStopped bool
	hooks      *hookQueue
	breaks     *breaks
	// probing has the instructions of a ProbeRequest; nil: the request is another.
	probing *probing
	// debugging stops for a debugger; nil: the request is another.
	debugging *debugging
	// departed: the process is a copy that has left the recording; nil: it is not.
	departed *Left
	// lending: the process is a copy, with pages of another process; nil: it has none.
	lending *lending
}

func newController(ctx context.Context, rec *record.Recording, request parts, a *attempt) *controller {
	c := &controller{ctx: ctx, request: request, attempt: a, result: &Result{Timing: a.timing},
		Process:    &tracee.Process{Threads: map[int]*tracee.Thread{}, ImageOptions: request.Image, LibraryPath: string(rec.Manifest.Agent.Path)},
		Recordings: &recorded.Recordings{Rec: rec}}
	if from := request.from; from != nil {
		c.Recordings = from.recordings.Share()
	}
	c.runner = &runner{process: c.Process}
	var asked []Break
	if f := request.free; f != nil {
		asked = f.breaks
	}
	c.breaks = newBreaks(c.Process, c.Recordings, asked)
	c.placer = breakpoint.New(c.Process, c.Recordings, c.breaks.giveWay)
	c.runner.placer = c.placer
	c.judge = &judge{process: c.Process, recordings: c.Recordings, placer: c.placer, result: c.result,
		reordered: request.schedule != nil, unnamed: request.Unnamed}
	c.judge.sleeping, c.judge.computing = request.bounds(rec)
	c.hooks = &hookQueue{process: c.Process, placer: c.placer}
	c.MovedFrom = c.placer.MovedFrom
	c.OutOfCopies = func(regs *ptrace.Registers) {
		c.placer.Original(regs)
		c.tracing.Original(regs)
		c.probing.original(regs)
		c.debugging.original(regs)
	}
	if p := request.probing; p != nil {
		c.probing = newProbing(c, p)
	}
	if d := request.debug; d != nil {
		c.debugging = newDebugging(c, d)
	}
	return c
}

// end is why the replay is over.
type end struct {
	kind    EndKind
	thread  *tracee.Thread
	signal  int
	status  int
	failure error // a *DivergenceError or *StuckError
}
