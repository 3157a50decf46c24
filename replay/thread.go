package replay

import (
	"syscall"

	"diagnose/replay/ptrace"
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
}

// finalState has the state of a thread that parking changes.
type finalState struct {
	regs   ptrace.Registers
	inside uint64 // its frame in the engine, 0 if it was not there
	signal int    // the signal that ended the process, if this thread received it
	// info is the signal's siginfo, if an instruction raised it.
	info *ptrace.Siginfo
}

// raising is a signal that a thread receives when it is resumed.
type raising struct {
	signal syscall.Signal
	info   ptrace.Siginfo
}
