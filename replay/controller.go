package replay

import (
	"context"
	"sync"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/loadguard"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
)

// placer stops threads at places that no event names, by breakpoints in the debug registers. The
// thread is in a stop at each call, and all calls are made on the tracing kernel thread.
type placer interface {
	// arm is for DG_TRAP_ARM: the thread's next event, at this address of the image, is a
	// preemption or a signal that arrived between two events.
	arm(t *tracee.Thread, event uint64) error
	// last is for DG_TRAP_LAST: the thread has done its last event and continues to its pc in the
	// core. moveHold: it is there already.
	last(t *tracee.Thread) (move, error)
	// first does the same for a thread without any event, before it runs.
	first(t *tracee.Thread, end *recorded.Thread, regs *ptrace.Registers) (move, error)
	// trap is called at a SIGTRAP that is not from the engine.
	trap(t *tracee.Thread, regs *ptrace.Registers) (move, error)
	// breakAt makes trap return moveArrived when the thread is at pc for the count-th time from
	// now on. pc 0 cancels that.
	breakAt(t *tracee.Thread, pc evidence.Addr, count uint64) error
	step.BreakSetter
	// steps is called before a thread resumes, by one instruction (on) or at full speed.
	steps(t *tracee.Thread, on bool) error
	// moved returns the program's instruction that the placer has executed elsewhere, if pc is
	// right after that copy; nil for any other pc. compares: the pc is after an instruction of the
	// placer itself.
	moved(pc uint64) *x86.Inst
	compares(pc uint64) bool
	// breaks reports whether the placer uses a debug register of the thread.
	breaks(t *tracee.Thread) bool
	// faulted is for a fault of the program's instruction. If the placer has a copy of it
	// elsewhere, the instruction is executed at its original address from then on.
	faulted(t *tracee.Thread, regs *ptrace.Registers) error
	// original changes the registers of a thread at or after such a copy to those that it would
	// have in the program's text.
	original(regs *ptrace.Registers)
	// useInlined says what else runs code in the program's text.
	useInlined(in *inlined)
	// exposed: a window of inlined has been removed, or a jump from its code.
	exposed(w *inlineWindow) error
}

// move is what happens to a thread after a stop.
type move struct {
	kind moveKind
	// signal is delivered to the thread when it resumes (info: its siginfo); 0: none.
	signal int
	info   *ptrace.Siginfo
	// step: the thread executes one instruction, then trap is called.
	step bool
}

type moveKind uint8

const (
	moveOn      moveKind = iota // the thread continues
	moveHold                    // it has reached its end and is parked in the engine
	moveArrived                 // it has reached the place of breakAt
	movePoint                   // it has reached a preemption
	moveForeign                 // the stop is not the placer's
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

	placer  placer
	early   *ptrace.Stop     // the first stop of a process whose parent has not reported it yet
	loading *loadguard.Guard // until DG_TRAP_HELLO
	watch   *watchdog
	// tracing handles the watches; nil if there are none.
	tracing *tracing
	// mu is held while a stop is handled, or accesses that need no stop.
	mu         sync.Mutex
	collecting sync.WaitGroup
	// allStopped: the inspection of a hit stopped the other threads, too.
	allStopped bool
	hooks      *hookQueue
	breaks     *breaks
}

func newController(ctx context.Context, rec *record.Recording, request parts, a *attempt) *controller {
	c := &controller{ctx: ctx, request: request, attempt: a, result: &Result{Timing: a.timing},
		Process:    &tracee.Process{Threads: map[int]*tracee.Thread{}, ImageOptions: request.Image, LibraryPath: string(rec.Manifest.Agent.Path)},
		Recordings: &recorded.Recordings{Rec: rec}}
	c.runner = &runner{process: c.Process}
	var asked []Break
	if f := request.free; f != nil {
		asked = f.breaks
	}
	c.breaks = newBreaks(c.Process, c.Recordings, asked)
	c.placer = newBreakpoints(c.Process, c.Recordings, c.breaks.giveWay)
	c.runner.placer = c.placer
	c.judge = &judge{process: c.Process, recordings: c.Recordings, placer: c.placer, result: c.result,
		reordered: request.schedule != nil, unnamed: request.Unnamed}
	c.judge.sleeping, c.judge.computing = request.bounds(rec)
	c.hooks = &hookQueue{process: c.Process, placer: c.placer}
	c.OutOfCopies, c.MovedFrom = c.withoutProbes, c.placer.moved
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

const unixFlagTrap = 0x100
