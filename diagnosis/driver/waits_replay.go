package driver

import (
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/futex"
	"diagnose/replay/record/eventlog"
)

// waitingCalls are the calls in which the threads of a replay rest that has no event left. Each
// thread has run as far as it could: an action that ends another thread's wait, such as a release
// or a signal to a condition, needs no event. A thread whose wait has ended still stays in its
// call. Calls that only try or that do not wait are left empty, and so are initialisations, as it
// is not checked whether they are over.
func (w waitReader) waitingCalls() []failure.WaitingCall {
	if !w.cut || !w.ofRecording(w.process) {
		return nil
	}
	calls := make([]failure.WaitingCall, len(w.process.Threads))
	for i := range calls {
		r, f := w.restsIn(i)
		switch {
		case f == nil || i >= len(w.walked):
		case f.Kind == agent.EntryCall:
			calls[i] = w.waitingCall(r, f, &w.walked[i])
		case f.Kind == agent.EntrySyscall && f.RAX == unix.SYS_FUTEX:
			calls[i] = w.waitingFutex(f)
		}
	}
	return calls
}

// restsIn is the frame of the call in which a thread of a replay rests in the recording library, by its index in the process; nil: it rests in
// none, or that cannot be read.
func (w waitReader) restsIn(i int) (*agent.RawRThread, *agent.RawFrame) {
	r, err := image.Struct[agent.RawRThread](w.process, evidence.Addr(agent.RThreadAddress(uint32(w.process.Threads[i].Ref.Recorded))))
	if err != nil || r.Inside == 0 {
		return nil, nil
	}
	f, err := image.Struct[agent.RawFrame](w.process, evidence.Addr(r.Inside))
	if err != nil {
		return nil, nil
	}
	return r, f
}

// waitingCall is the call that a thread made with the registers of f: the operation's
// number, its variable, and how (agent/src/wrap/sync.c and its neighbours).
func (w waitReader) waitingCall(r *agent.RawRThread, f *agent.RawFrame, s *unwind.Stack) failure.WaitingCall {
	c := failure.WaitingCall{Object: evidence.Addr(r.WaitsObject)}
	how := eventlog.Sync(f.RCX)
	switch eventlog.Kind(r.WaitsFor) {
	case eventlog.KindMutex:
		c.What = evidence.WaitMutex
	case eventlog.KindRWLock:
		c.What = evidence.WaitRWLock
	case eventlog.KindSem:
		c.What = evidence.WaitSemaphore
	case eventlog.KindJoin:
		const waits, timed = 0, 2 // enum dg_join; 1 tries
		if how := f.RDX & 0xff; how == waits || how == timed {
			c.What, c.Joined, c.Timed = evidence.WaitThreadExit, int(r.WaitsObject), how == timed
		}
		return c
	case eventlog.KindCond:
		now, err := image.Uint32(w.process, c.Object+failure.CondSequence)
		if err == nil {
			asleep := w.failing[0].Manifest.Outcome.Asleep[r.Index] == c.Object+failure.CondSequence
			c.What, c.Timed, c.Came = evidence.WaitCondition, !calls(s, "pthread_cond_wait"), now != r.CondSequence && !asleep
		}
		return c
	case eventlog.KindBarrier:
		c.What = evidence.WaitBarrier
		return c
	}
	switch how {
	case eventlog.SyncLock, eventlog.SyncRead, eventlog.SyncWait:
	case eventlog.SyncTimed, eventlog.SyncTimedRead, eventlog.SyncTimedWait:
		c.Timed = true
	default:
		return failure.WaitingCall{}
	}
	return c
}

// waitingFutex is a futex call that the program made itself, with the registers of f.
func (w waitReader) waitingFutex(f *agent.RawFrame) failure.WaitingCall {
	if op := futex.Command(f.RSI); op != futex.Wait && op != futex.WaitBitset {
		return failure.WaitingCall{}
	}
	c := failure.WaitingCall{What: evidence.WaitFutex, Object: evidence.Addr(f.RDI), Timed: f.R10 != 0}
	if futex.Private(f.RSI) {
		c.What = evidence.WaitPrivateFutex
	}
	value, err := image.Uint32(w.process, c.Object)
	if err != nil {
		return failure.WaitingCall{}
	}
	c.Came = value != uint32(f.RDX)
	return c
}

// unhandled reports whether the program has no signal handlers, according to the recording library
// (dg_actions, agent/src/engine/signal_action.c). The C library's own, SIGCANCEL and SIGSETXID
// (glibc, sysdeps/unix/sysv/linux/internal-signals.h), end no waits.
func (w waitReader) unhandled() bool {
	actions, found := w.process.SymbolNamed("dg_actions")
	const signals, size, ignore, cancel, setxid = 64, 32, 1, 32, 33
	if !found || actions.Size != (signals+1)*size {
		return false
	}
	for n := 1; n <= signals; n++ {
		handler, err := image.Uint64(w.process, actions.Addr+evidence.Addr(n*size))
		if err != nil || handler > ignore && n != cancel && n != setxid {
			return false
		}
	}
	return true
}

// calls reports whether a function with a name is on a stack.
func calls(s *unwind.Stack, name string) bool {
	return slices.ContainsFunc(s.Frames, func(f unwind.Frame) bool {
		return slices.ContainsFunc(f.Calls, func(c image.SymbolizedCall) bool { return c.Site.Function == name })
	})
}
