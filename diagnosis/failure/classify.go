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
		f.Sentence = Sentence(f, Names{Threads: len(in.Process.Threads)})
		return f, nil
	}
	s := newScene(in, thread)
	f := s.classify(in.Process.Program.PID)
	if f.Kind == evidence.NoFailure && f.Signal == nil && in.Exit != nil {
		s.exited(&f, &in)
	}
	hung(&f, in.Findings)
	blocked(&f, in.Blocked)
	f.Sentence = Sentence(f, Names{Threads: len(s.threads)})
	return f, s.limits
}

func newScene(in Input, thread *image.Thread) *scene {
	return &scene{
		target:   in.Process,
		mappings: in.Process.Mappings,
		modules:  in.Process.Modules,
		thread:   thread,
		threads:  in.Process.Threads,
		frames:   in.Stack.Frames,
		stack:    in.Stack,
		pid:      in.Process.Program.PID,
		recorded: in.Handled,
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
	s := newScene(in, thread)
	switch {
	case thread.Signal != nil:
		s.handled(&evidence.Failure{Signal: completeSignal(*thread.Signal)})
	case in.Exit != nil:
		s.exitedInHandler(&evidence.Failure{}, *in.Exit)
	}
	return s.frames
}

func (s *scene) classify(pid int) evidence.Failure {
	ref := s.thread.Ref
	f := evidence.Failure{Kind: evidence.UnknownFailure, Thread: &ref, Proof: evidence.FromCore}
	inferred := false
	switch {
	case s.thread.Signal != nil && s.thread.Signal.Number != 0:
		f.Signal = completeSignal(*s.thread.Signal)
		s.handled(&f)
		inferred = s.raisedAgain(&f)
	case s.exit != nil && s.exitedInHandler(&f, *s.exit):
	default:
		f.Kind = evidence.NoFailure
		s.addInstruction(&f)
		f.Site = s.site()
		return f
	}
	s.addInstruction(&f)
	s.bySignal(&f, pid)
	if inferred {
		f.Proof = evidence.Inferred
		if f.Fault != nil {
			f.Fault.Proof = evidence.Inferred
		}
	}
	if !byInstruction(f.Kind) {
		f.Instruction = nil // the one that happened to be next when the signal came
	}
	f.Site = s.site()
	if f.Fault != nil && f.Fault.Access == evidence.Execute && s.guessedSite() &&
		(f.Message == arrivedByReturn || f.Site != nil && image.Machinery(f.Site)) {
		f.Site = nil // old return addresses lie on the stack, of allocators above all
	}
	return f
}

// guessedSite reports whether the thread's pc is in no code and the frames found on its stack are
// only guesses: it is not known which function returned there.
func (s *scene) guessedSite() bool {
	m := s.MappingAt(s.pc())
	return (m == nil || !m.Executable()) && (len(s.frames) < 2 || s.frames[1].Trust == evidence.TrustScan)
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
func (s *scene) bySignal(f *evidence.Failure, pid int) {
	sig := f.Signal
	if sig.Number != int(unix.SIGABRT) && sentByProcess(sig.Code) {
		s.killed(f, pid)
		return
	}
	switch unix.Signal(sig.Number) {
	case unix.SIGSEGV:
		s.segmentation(f)
	case unix.SIGBUS:
		s.bus(f)
	case unix.SIGFPE:
		s.arithmetic(f)
	case unix.SIGILL:
		s.illegal(f)
	case unix.SIGTRAP:
		s.trap(f)
	case unix.SIGSYS:
		s.systemCall(f)
	case unix.SIGABRT:
		s.abort(f, pid)
	default:
		s.killed(f, pid)
	}
}

// killed judges a signal that no instruction of the program caused. A stopped process that still
// lives has not failed.
func (s *scene) killed(f *evidence.Failure, pid int) {
	switch unix.Signal(f.Signal.Number) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT, unix.SIGCHLD:
		f.Kind = evidence.NoFailure
		return
	}
	f.Kind = evidence.KilledBySignal
	sender := ""
	switch {
	case f.Signal.SenderPID == 0:
	case f.Signal.SenderPID == pid:
		sender = "the process sent " + f.Signal.Name + " to itself"
	case f.Message != "":
		sender = senderText(f.Signal)
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
		if d.Kind != evidence.FindingDeadlock && d.Kind != evidence.FindingSelfLock {
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
