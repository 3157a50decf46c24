package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"

	"golang.org/x/sys/unix"
)

// Input is the data that a failure is judged by.
type Input struct {
	Process *image.Process
	// Thread failed. If it is nil, the process's failing thread is judged.
	Thread *image.Thread
	// Stack is the thread's stack. Its frames are symbolized at least as far as they are shown. The
	// frames of deep recursions may have no Calls.
	Stack unwind.Stack
	// Exit is the status with which the thread ended its process; nil if it did not, or if that is
	// not known.
	Exit *int
	// Handled are the signals whose handlers the thread was in when it ended, the outermost first,
	// according to a recording; nil: only the stack shows them.
	Handled []evidence.Signal
	// Findings of Deadlocks make a hung process's failure a deadlock.
	Findings []evidence.Finding
	// Blocked turns a process into a deadlock if none of its threads can continue; nil if some can.
	Blocked *Blocked
}

// Classify says what failed, and which limits kept it from knowing more. It fills the whole Failure
// except Source, Origin and the Operands' Symbols. The Sentence has no expressions of the program;
// Sentence adds them.
func Classify(in Input) (evidence.Failure, []evidence.Limit) {
	thread := in.Thread
	if thread == nil {
		thread = in.Process.FailingThread()
	}
	if thread == nil {
		f := evidence.Failure{Kind: evidence.NoFailure, Proof: evidence.FromCore}
		hung(&f, in.Findings)
		blocked(&f, in.Blocked)
		Describe(&f, Names{Threads: len(in.Process.Threads)})
		return f, nil
	}
	j := newJudge(in, thread)
	f := j.classify()
	if f.Kind == evidence.NoFailure && f.Signal == nil && in.Exit != nil {
		j.exited(&f, &in)
	}
	hung(&f, in.Findings)
	blocked(&f, in.Blocked)
	Describe(&f, Names{Threads: len(in.Process.Threads)})
	return f, j.limits.list
}

// judge says how one thread ended, by the signal that it received or the status with which it ended
// the process.
type judge struct {
	process  *process
	thread   *image.Thread
	stack    *callStack
	handlers handlerFrames
	// cpu is at the instruction under judgement, once the stack's frames begin there.
	cpu    *processor
	limits *limitList
	// exit is the status with which the thread ended its process; nil if it did not.
	exit *int
}

func newJudge(in Input, thread *image.Thread) *judge {
	p := &process{target: in.Process, mappings: in.Process.Mappings, modules: in.Process.Modules, pid: in.Process.Program.PID}
	return judgeOf(p, &callStack{process: p, thread: thread, frames: in.Stack.Frames, walk: in.Stack}, in)
}

func judgeOf(p *process, stack *callStack, in Input) *judge {
	return &judge{
		process:  p,
		thread:   stack.thread,
		stack:    stack,
		handlers: handlerFrames{stack: stack, recorded: in.Handled},
		limits:   &limitList{},
		exit:     in.Exit,
	}
}

// Frames are the frames that Classify judges: the whole stack, or, if the handler of a fault ended
// the process, the frames from the fault outward.
func Frames(in Input) []unwind.Frame {
	thread := in.Thread
	if thread == nil {
		thread = in.Process.FailingThread()
	}
	if thread == nil {
		return in.Stack.Frames
	}
	j := newJudge(in, thread)
	switch {
	case thread.Signal != nil:
		j.handlers.handled(&evidence.Failure{Signal: completeSignal(*thread.Signal)})
	case in.Exit != nil:
		j.handlers.exitedInHandler(&evidence.Failure{}, *in.Exit)
	}
	return j.stack.frames
}

func (j *judge) classify() evidence.Failure {
	ref := j.stack.thread.Ref
	f := evidence.Failure{Kind: evidence.UnknownFailure, Thread: &ref, Proof: evidence.FromCore}
	inferred := false
	switch {
	case j.stack.thread.Signal != nil && j.stack.thread.Signal.Number != 0:
		f.Signal = completeSignal(*j.stack.thread.Signal)
		j.handlers.handled(&f)
		inferred = j.handlers.raisedAgain(&f)
	case j.exit != nil && j.handlers.exitedInHandler(&f, *j.exit):
	default:
		f.Kind = evidence.NoFailure
		j.addInstruction(&f)
		f.Site = j.stack.site()
		return f
	}
	j.addInstruction(&f)
	j.bySignal(&f)
	if inferred {
		f.Proof = evidence.Inferred
		if f.Fault != nil {
			f.Fault.Proof = evidence.Inferred
		}
	}
	if !byInstruction(f.Kind) {
		f.Instruction = nil // merely the next one when the signal arrived
	}
	f.Site = j.stack.site()
	if f.Fault != nil && f.Fault.Access == evidence.Execute && j.stack.guessedSite() &&
		(f.Arrival == evidence.ArrivedByReturn || f.Site != nil && image.Machinery(f.Site)) {
		f.Site = nil // old return addresses remain on the stack, mainly those of allocators
	}
	return f
}

// guessedSite reports whether the thread's pc is in no code and the frames found on its stack are
// only guesses: it is not known which function returned there.
func (k *callStack) guessedSite() bool {
	m := k.MappingAt(k.pc())
	return (m == nil || !m.Executable()) && (len(k.frames) < 2 || k.frames[1].Trust == evidence.TrustScan)
}

// byInstruction reports whether the instruction under judgement caused the failure, rather than a
// call that gave up or a signal from outside.
func byInstruction(kind evidence.FailureKind) bool {
	switch kind {
	case evidence.Abort, evidence.AssertionFailure, evidence.CxxTerminate, evidence.RustPanic, evidence.GoPanic,
		evidence.HeapCorruption, evidence.FortifyFailure, evidence.StackSmashing, evidence.Deadlock,
		evidence.KilledBySignal, evidence.NoFailure:
		return false
	}
	return true
}

// bySignal fills Kind and the fields that depend on it.
func (j *judge) bySignal(f *evidence.Failure) {
	sig := f.Signal
	if sig.Number != int(unix.SIGABRT) && sentByProcess(sig.Code) {
		j.killed(f)
		return
	}
	switch unix.Signal(sig.Number) {
	case unix.SIGSEGV:
		j.segmentation(f)
	case unix.SIGBUS:
		j.bus(f)
	case unix.SIGFPE:
		j.arithmetic(f)
	case unix.SIGILL:
		j.illegal(f)
	case unix.SIGTRAP:
		j.trap(f)
	case unix.SIGSYS:
		j.systemCall(f)
	case unix.SIGABRT:
		j.abort(f)
	default:
		j.killed(f)
	}
}

// killed judges a signal that no instruction of the program caused. A stopped process that still
// lives has not failed.
func (j *judge) killed(f *evidence.Failure) {
	switch unix.Signal(f.Signal.Number) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT, unix.SIGCHLD:
		f.Kind = evidence.NoFailure
		return
	}
	f.Kind = evidence.KilledBySignal
	sender := ""
	switch {
	case f.Signal.SenderPID == 0:
	case f.Signal.SenderPID == j.process.pid:
		sender = evidence.Say("the process sent " + f.Signal.Name + " to itself")
	case f.Message != "":
		sender = evidence.Say(senderText(f.Signal))
	}
	f.Message = joinClauses(sender, f.Message)
}

// hung turns the failure of a process that did not fail by itself, and whose threads wait for each
// other, into a deadlock.
func hung(f *evidence.Failure, findings []evidence.Finding) {
	if f.Kind != evidence.NoFailure && f.Kind != evidence.KilledBySignal {
		return
	}
	for i := range findings {
		d := &findings[i]
		if !d.Kind.Locks() {
			continue
		}
		f.Kind, f.Proof, f.Message = evidence.Deadlock, d.Proof, d.Summary
		f.Site, f.Instruction = d.Site, nil
		if len(d.Threads) > 0 {
			ref := d.Threads[0]
			f.Thread = &ref
		}
		return
	}
}
