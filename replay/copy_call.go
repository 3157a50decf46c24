package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay/checkpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
)

// CallLimit bounds how long a copy runs. The zero value is 10 seconds, any number of instructions.
type CallLimit struct {
	Time time.Duration
	// Instructions of the program, those of the recording library not counted. With such a bound each takes some 10 us.
	Instructions uint64
}

const defaultCallTime = 10 * time.Second

// Call is a call of a function of the program, by the System V calling convention for x86-64.
type Call struct {
	Function evidence.Addr
	// Integers are the arguments in general registers, at most 6; Vectors the low halves of those in vector registers, at most 8:
	// math.Float64bits of a double. Upper are the high halves of the first of these.
	Integers, Vectors, Upper []uint64
	// Stack are the arguments on the stack.
	Stack []byte
	Limit CallLimit
	// Foreign is memory of another process that the function can use; nil: there is none.
	Foreign Foreign
}

// Returned has what a function returned: what of it is the result depends on the function's type.
type Returned struct {
	// RAX and RDX have integers and pointers, Vector floating-point numbers.
	RAX, RDX uint64
	Vector   *image.VectorState
	// X87 is the start of the FXSAVE area, with long doubles.
	X87 []byte
}

// CallEnd is how a run of a copy ended before it arrived where it should.
type CallEnd string

// The ends.
const (
	CallSignal       CallEnd = "it received a signal that ends the program"
	CallExit         CallEnd = "it ended the program"
	CallWaits        CallEnd = "it waits for an input that the recording does not have"
	CallStuck        CallEnd = "it cannot continue"
	CallTime         CallEnd = "it has used its time"
	CallInstructions CallEnd = "it has used its instructions"
	CallElsewhere    CallEnd = "the function did not return to its caller"
)

// CallError says why a call did not return. The copy is where it was then; no other call is possible in it, except after CallInstructions.
type CallError struct {
	End CallEnd
	// Signal came, or Status would be the program's.
	Signal, Status int
	// Thread was at PC; 0: that is not known.
	Thread uint32
	PC     evidence.Addr
	// Err says more for CallStuck.
	Err error
}

func (e *CallError) Error() string {
	text := "replay: the call in a copy of the process: " + e.what()
	if e.Thread != 0 {
		text += fmt.Sprintf("; thread %d was at %v", e.Thread, e.PC)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Bare is the text without the call and the place.
func (e *CallError) Bare() string {
	text := e.what()
	if e.Err != nil {
		text += ": " + wording.Bare(e.Err)
	}
	return text
}

func (e *CallError) what() string {
	text := string(e.End)
	switch e.End {
	case CallSignal:
		text += ", " + wording.Signal(e.Signal)
	case CallExit:
		text += fmt.Sprintf(", with the status %d", e.Status)
	}
	return text
}

func (e *CallError) Unwrap() error { return e.Err }

// ErrCopyOver says that a copy has ended by an earlier call.
var ErrCopyOver = errors.New("replay: no call is possible any more in this copy of the process")

// Call calls a function. Afterwards the thread's registers are as before the call; memory is as the function leaves it. The error is a
// *CallError if the function does not return.
func (x *Copy) Call(ctx context.Context, call Call) (*Returned, error) {
	const integers, vectors = 6, 8
	if len(call.Integers) > integers || len(call.Vectors) > vectors || len(call.Upper) > len(call.Vectors) {
		return nil, fmt.Errorf("replay: a call with %d and %d arguments, of at most %d and %d", len(call.Integers), len(call.Vectors), integers, vectors)
	}
	if x.over {
		return nil, ErrCopyOver
	}
	before, err := ptrace.GetRegisters(x.thread.TID)
	if err != nil {
		return nil, err
	}
	extended, err := ptrace.GetRegset(x.thread.TID, ptrace.RegsetXState)
	if err != nil {
		return nil, err
	}
	if err := x.c.beginLending(x.thread, &call); err != nil {
		return nil, err
	}
	sp, err := x.enter(&call, before, extended)
	if err != nil {
		return nil, err
	}
	if err := x.Run(ctx, []evidence.Addr{checkpoint.ReturnPC}, call.Limit); err != nil {
		return nil, err
	}
	after, err := ptrace.GetRegisters(x.thread.TID)
	if err != nil {
		return nil, err
	}
	if after.Rsp != sp+8 || after.Rip != checkpoint.ReturnPC {
		x.over = true
		return nil, &CallError{End: CallElsewhere, Thread: x.thread.Index, PC: evidence.Addr(after.Rip)}
	}
	r := &Returned{RAX: after.Rax, RDX: after.Rdx}
	if r.Vector, err = x.Vector(); err != nil {
		return nil, err
	}
	if r.X87, err = x.readX87(); err != nil {
		return nil, err
	}
	if err := x.c.endLending(); err != nil {
		return nil, err
	}
	return r, errors.Join(x.setRegisters(&before), ptrace.SetRegset(x.thread.TID, ptrace.RegsetXState, extended))
}

// enter sets the registers and the stack of the thread to those at the start of the function. sp is its stack pointer there.
func (x *Copy) enter(call *Call, regs ptrace.Registers, extended []byte) (sp uint64, err error) {
	const redZone, alignment, flagDirection, vectorsAt = 128, 64, 0x400, 160
	sp = (regs.Rsp-redZone)&^(alignment-1) - stackRoom(call) - 8
	if err := x.c.Memory.SetWord(sp, checkpoint.ReturnPC); err != nil {
		return 0, fmt.Errorf("replay: the stack of thread %d: %w", x.thread.Index, err)
	}
	if err := x.pushStack(call, sp); err != nil {
		return 0, err
	}
	regs.Rip, regs.Rsp, regs.Rax = uint64(call.Function), sp, uint64(len(call.Vectors))
	regs.Eflags &^= flagDirection | ptrace.FlagTrap | ptrace.FlagResume
	for i, slot := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.Rcx, &regs.R8, &regs.R9} {
		if i < len(call.Integers) {
			*slot = call.Integers[i]
		}
	}
	if len(call.Vectors) > 0 {
		area := slices.Clone(extended)
		const states, stateSSE = 512, 2 // XSTATE_BV (Intel SDM volume 1, 13.4.2)
		area[states] |= stateSSE
		for i, v := range call.Vectors {
			le.PutUint64(area[vectorsAt+16*i:], v)
		}
		for i, v := range call.Upper {
			le.PutUint64(area[vectorsAt+16*i+8:], v)
		}
		if err := ptrace.SetRegset(x.thread.TID, ptrace.RegsetXState, area); err != nil {
			return 0, err
		}
	}
	return sp, x.setRegisters(&regs)
}

// Run lets the thread run, and the others where it waits for them, up to an instruction at which it has arrived by itself: one that is given,
// or, with a bound of instructions, the one after them, which is no error if no instruction is given. A context that is cancelled ends it.
// The error is a *CallError if something else stops it.
func (x *Copy) Run(ctx context.Context, upTo []evidence.Addr, limit CallLimit) error {
	if x.over {
		return ErrCopyOver
	}
	if limit.Time == 0 {
		limit.Time = defaultCallTime
	}
	timed, cancel := context.WithTimeout(ctx, limit.Time)
	defer cancel()
	x.ran = true
	arrived, err := x.begin(timed, upTo, limit)
	if err != nil {
		return err
	}
	err = x.c.loop()
	x.c.watch.stop()
	err = errors.Join(err, x.c.StopAll())
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = x.at(&CallError{End: CallTime}, x.thread)
	}
	if err == nil {
		err = x.c.breaks.remove()
	}
	if err == nil {
		err = x.ended(*arrived, len(upTo) == 0)
	}
	var e *CallError
	x.over = err != nil && !(errors.As(err, &e) && e.End == CallInstructions)
	return err
}

// begin resumes the copy's threads. arrived will say whether the thread has arrived at one of the instructions.
func (x *Copy) begin(ctx context.Context, upTo []evidence.Addr, limit CallLimit) (arrived *bool, err error) {
	c := x.c
	c.ctx, c.end = ctx, nil
	start, err := x.stopped().ThreadPC(x.thread.Index)
	if err != nil {
		return nil, err
	}
	arrived, begun := new(bool), false
	var list []Break
	for _, pc := range upTo {
		list = append(list, Break{PC: pc, Do: func(s *Stopped) error {
			starts := pc == start && !begun
			begun = true
			if starts || s.thread != x.thread {
				return nil
			}
			*arrived = true
			return ErrEnough
		}})
	}
	if err := x.holdOthers(); err != nil {
		return nil, err
	}
	c.breaks = newBreaks(c.Process, c.Recordings, list)
	if err := c.breaks.place(); err != nil {
		return nil, err
	}
	if c.stepper = nil; limit.Instructions > 0 {
		c.stepper = step.New(&step.Stepping{Most: limit.Instructions, Each: func(*Executed) {}}, c.Process, c.placer)
		if err := c.stepper.Follow(x.thread, 0); err != nil {
			return nil, err
		}
	}
	c.watch = startWatchdog(c)
	c.watch.watchProcess(c.PID, c.Control)
	return arrived, c.goOn()
}

// holdOthers has the engine hold the threads that are in the program, until they get the right to run.
func (x *Copy) holdOthers() error {
	c := x.c
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	control.Holder, control.FreeFirst, control.FreeMost = x.thread.Index, x.thread.Index, control.Consumed+eventsOver
	if err := c.WriteControl(control); err != nil {
		return err
	}
	for _, t := range c.SortedThreads() {
		if t == x.thread {
			continue
		}
		if err := x.hold(t, control); err != nil {
			return err
		}
	}
	return nil
}

// StepOther lets a thread that is not the copy's own execute one instruction, if it is in the program. Where that faults, it stays:
// the signal is not delivered.
func (x *Copy) StepOther(thread uint32) error {
	t := x.c.ThreadNumbered(thread)
	if t == nil {
		return fmt.Errorf("replay: there is no thread %d", thread)
	}
	r, err := x.c.ReadThread(thread)
	if err != nil || r.Inside != 0 || r.State != agent.RRunning || t.Final != nil || !t.Stopped {
		return err
	}
	x.ran = true
	if _, err := x.c.Traps.StepOnce(t.TID); err != nil {
		return err
	}
	t.Deferred = nil
	return nil
}

// ended returns the error for the end of a run. steps: the run had a number of instructions to execute, and no place to arrive at.
func (x *Copy) ended(arrived, steps bool) error {
	end := x.c.end
	e := &CallError{Signal: end.signal, Status: end.status}
	switch {
	case end.kind == EndMoment && (arrived || steps):
		return x.c.leaveSteps(x.thread)
	case end.kind == EndMoment:
		e.End = CallInstructions
		if err := x.c.leaveSteps(x.thread); err != nil {
			return err
		}
	case end.kind == EndFailure:
		e.End = CallSignal
	case end.kind == EndExit:
		e.End = CallExit
	case end.kind == EndIdle:
		e.End = CallWaits
	default:
		e.End, e.Err = CallStuck, end.failure
	}
	return x.at(e, end.thread)
}

// leaveSteps ends the stepping of a copy's thread.
func (c *controller) leaveSteps(t *tracee.Thread) error {
	if c.stepper == nil {
		return nil
	}
	err := c.stepper.Leave(t)
	c.stepper = nil
	return err
}

// at completes an error with the place where a thread is.
func (x *Copy) at(e *CallError, t *tracee.Thread) error {
	if t == nil || t.Index == 0 {
		return e
	}
	pc, err := x.stopped().ThreadPC(t.Index)
	if err != nil {
		return errors.Join(e, err)
	}
	e.Thread, e.PC = t.Index, pc
	return e
}

// makesThread reports whether a thread of a copy is about to make another one. The recording library does so in code that it has made of the C
// library's, and the flags of clone3 are in memory, so the filter does not know that.
func (c *controller) makesThread(regs *ptrace.Registers) bool {
	flags := regs.Rdi
	switch regs.Orig_rax {
	case unix.SYS_CLONE:
	case unix.SYS_CLONE3:
		var err error
		if flags, err = c.Memory.Word(regs.Rdi); err != nil { // the first member of struct clone_args
			return false
		}
	default:
		return false
	}
	return flags&unix.CLONE_THREAD != 0
}

// refuse ends the run of a copy whose thread is about to ask the kernel for more than it may (package checkpoint).
func (c *controller) refuse(t *tracee.Thread) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if c.makesThread(&regs) {
		return c.cont(t, 0)
	}
	number := regs.Orig_rax
	regs.Orig_rax = ^uint64(0) // the call is not made
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return err
	}
	if number == unix.SYS_EXIT_GROUP {
		return c.exitedFree(t, int(uint8(regs.Rdi)))
	}
	return c.wild(t, fmt.Sprintf("system call %d at %#x acts outside of the copy, or past the recording library", number, regs.Rip))
}
