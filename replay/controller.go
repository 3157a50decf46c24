package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// thread is a thread of the replayed process.
type thread struct {
	tid int
	// index is its number in the recording; 0 until the engine knows it.
	index uint32
	// stopped: the thread is in a ptrace stop.
	stopped bool
	// deferred is a stop that was reported while all threads were being stopped for another
	// reason. It is handled when they resume.
	deferred *ptrace.Stop
	// final has the registers at the thread's end, before it was parked in the engine; nil if it
	// was not parked.
	final *finalState
	// watched: its debug registers hold the watches.
	watched bool
	// raise is a signal that it receives when it is resumed; nil: none.
	raise *raising
	// steps is the state of a thread that is stepped; nil if it is not.
	steps *steps
}

// finalState has the state of a thread that parking changes.
type finalState struct {
	regs   ptrace.Registers
	inside uint64 // its frame in the engine, 0 if it was not there
	signal int    // that ended the process, if this thread got it
	// info is the signal's, if an instruction raised it.
	info *ptrace.Siginfo
}

// placer stops threads at places that no event names, by breakpoints in the debug registers. The
// thread is in a stop at each call, and all calls are made on the tracing kernel thread.
type placer interface {
	// arm is for DG_TRAP_ARM: the thread's next event, at this address of the image, is a
	// preemption or a signal that arrived between two events.
	arm(t *thread, event uint64) error
	// last is for DG_TRAP_LAST: the thread has done its last event and continues to its pc in the
	// core. moveHold: it is there already.
	last(t *thread) (move, error)
	// first does the same for a thread without any event, before it runs.
	first(t *thread, end *coreThread, regs *ptrace.Registers) (move, error)
	// trap is called at a SIGTRAP that is not from the engine.
	trap(t *thread, regs *ptrace.Registers) (move, error)
	// breakAt makes trap return moveArrived when the thread is at pc for the count-th time from
	// now on. pc 0 cancels that.
	breakAt(t *thread, pc evidence.Addr, count uint64) error
	// resumeAt also stops the thread at the pcs, and no longer at those of earlier calls.
	// freeRegisters returns how many pcs that can be.
	resumeAt(t *thread, pcs ...uint64) error
	room(t *thread) int
	// steps is called before a thread goes on: by one instruction, or at full speed.
	steps(t *thread, on bool) error
	// moved returns the program's instruction that the placer has executed elsewhere, if pc is
	// right after that copy; nil for any other pc. compares: the pc is after an instruction of the
	// placer itself.
	moved(pc uint64) *x86.Inst
	compares(pc uint64) bool
	// breaks reports whether the placer uses a debug register of the thread.
	breaks(t *thread) bool
	// faulted is for a fault of the program's instruction. If the placer has a copy of it
	// elsewhere, the instruction is executed at its original address from then on.
	faulted(t *thread, regs *ptrace.Registers) error
	// original changes the registers of a thread at or after such a copy to those that it would
	// have in the program's text.
	original(regs *ptrace.Registers)
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
	moveOn      moveKind = iota // goes on
	moveHold                    // has come to its end: it is parked in the engine
	moveArrived                 // has come to the place of breakAt
	movePoint                   // has come to a preemption
	moveForeign                 // the stop is none of the placer's
)

// controller replays one process. It passes each stop to the part that handles it.
type controller struct {
	ctx     context.Context
	opts    Options
	attempt *attempt
	rec     *record.Recording
	stages  []*stage
	step    int            // index of the stage that is replayed now
	core    *image.Process // the recorded end; nil if the recording has none
	// recorded are the core's threads, once somebody asked for them.
	recorded map[uint32]*coreThread
	result   *Result

	pid      int
	memory   *processMemory
	mapped   []span       // by the tool, for code and data of its own
	library  []span       // the recording library's code, once somebody asked for it
	detached bool         // the process was handed over
	may      *unix.CPUSet // the processors that were theirs before pin; nil: all still are
	threads  map[int]*thread
	early    *ptrace.Stop // the first stop of a process whose parent has not told of it yet
	control  uint64       // address of the control; 0 before DG_TRAP_HELLO
	trapPC   uint64
	loading  *loading // until DG_TRAP_HELLO
	placer   placer
	watch    *watchdog
	end      *end
	// tracing is of the watches; nil if there are none.
	tracing *tracing
	// stepper is of Options.Step; nil: nothing is stepped.
	stepper        *stepper
	watchRegisters watchRegisters
	// mu is held by whoever deals with a stop, or with accesses that need none.
	mu         sync.Mutex
	collecting sync.WaitGroup
	// allStopped: the inspection of a hit stopped the other threads, too.
	allStopped bool
	// hooks are those to come; hookArmed: the first one's event has been.
	hooks     []Hook
	hookArmed bool
	// breaks are those of Options.Breaks; nil: none.
	breaks *breaks
}

// end is why the replay is over.
type end struct {
	kind    EndKind
	thread  *thread
	signal  int
	status  int
	failure error // a *DivergenceError or *StuckError
}

var errNoThread = errors.New("replay: the engine does not know the thread")

// readStruct reads one of the Raw types of package agent.
func readStruct[T any](m io.ReaderAt, addr uint64) (*T, error) {
	v := new(T)
	p := make([]byte, binary.Size(v))
	if _, err := m.ReadAt(p, int64(addr)); err != nil {
		return nil, err
	}
	if _, err := binary.Decode(p, binary.LittleEndian, v); err != nil {
		return nil, err
	}
	return v, nil
}

func (c *controller) readControl() (*agent.RawControl, error) {
	return readStruct[agent.RawControl](c.memory, c.control)
}

// rthread reads what the engine keeps of a thread.
func (c *controller) rthread(index uint32) (*agent.RawRThread, error) {
	return readStruct[agent.RawRThread](c.memory, agent.RThreadAddress(index))
}

// identify finds a thread's index.
func (c *controller) identify(t *thread) error {
	if t.index != 0 {
		return nil
	}
	control, err := c.readControl()
	if err != nil {
		return err
	}
	// The youngest first: those are who is asked for.
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		r, err := c.rthread(i)
		if err != nil {
			continue // a slot that is not mapped yet, or not any more
		}
		if int(r.RealTID) == t.tid && r.State != agent.RNone {
			t.index = i
			return nil
		}
	}
	return fmt.Errorf("%w (%d)", errNoThread, t.tid)
}

// underFrame replaces what a frame of the engine has saved.
func underFrame(regs ptrace.Registers, f *agent.RawFrame) ptrace.Registers {
	regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx, regs.Rsi, regs.Rdi, regs.Rbp = f.RAX, f.RBX, f.RCX, f.RDX, f.RSI, f.RDI, f.RBP
	regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15 = f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15
	regs.Rip, regs.Rsp, regs.Eflags = f.RIP, f.RSP, f.RFlags
	regs.Orig_rax = ^uint64(0)
	return regs
}

// park sends a thread that has come to its end into the engine: parkFor.
func (c *controller) park(t *thread, regs *ptrace.Registers, signal int) error {
	return c.parkFor(t, &finalState{regs: *regs, signal: signal}, agent.ParkedEnd)
}

// parkFor sends a thread into the engine, which gives
// the right to run to the next one and waits.
func (c *controller) parkFor(t *thread, f *finalState, why uint64) error {
	control, err := c.readControl()
	if err != nil {
		return err
	}
	r, err := c.rthread(t.index)
	if err != nil {
		return err
	}
	if control.ParkPC == 0 {
		return errors.New("replay: the engine has no place to park a thread")
	}
	const room = 512 // an engine stack that is in use is left as it is
	top := r.EngineSP
	if slot := agent.RThreadAddress(t.index); f.regs.Rsp > slot && f.regs.Rsp < slot+agent.ThreadSlot {
		top = f.regs.Rsp - room
	}
	f.inside = r.Inside
	t.final = f
	t.stepParked()
	parked := f.regs
	parked.Rdi = why
	parked.Rip, parked.Rsp = control.ParkPC, top&^15-8
	parked.Eflags &^= unixFlagTrap
	parked.Orig_rax = ^uint64(0)
	if err := ptrace.SetRegisters(t.tid, &parked); err != nil {
		return err
	}
	return c.cont(t, 0)
}

const unixFlagTrap = 0x100

func (c *controller) cont(t *thread, signal syscall.Signal) error {
	return c.goes(t, signal, t.stepping())
}

// goes lets a thread go on, by one instruction if it steps.
func (c *controller) goes(t *thread, signal syscall.Signal, steps bool) error {
	if c.stepper != nil {
		if err := c.placer.steps(t, steps); err != nil {
			return err
		}
	}
	if t.raise != nil && signal == 0 {
		var err error
		if signal, err = c.raised(t); err != nil {
			return err
		}
	}
	t.stopped = false
	switch {
	case c.loading != nil:
		return ptrace.ContToCall(t.tid, signal)
	case steps:
		return ptrace.Step(t.tid, signal)
	}
	return ptrace.Cont(t.tid, signal)
}
