package tracee

import (
	"syscall"

	"diagnose/replay/ptrace"
)

// Thread is a thread of the replayed process.
type Thread struct {
	TID int
	// Index is its number in the recording; 0 until the engine knows it.
	Index uint32
	// Stopped: the thread is in a ptrace stop.
	Stopped bool
	// Deferred is a stop that was reported while all threads were being stopped for another
	// reason. It is handled when they resume.
	Deferred *ptrace.Stop
	// Final has the registers at the thread's end, before it was parked in the engine; nil if it
	// was not parked.
	Final *Final
	// Watched: its debug registers hold the watches.
	Watched bool
	// passing is the instruction under a trap that it executes, passed the address of the one that
	// it has executed up to its last stop; 0: none.
	passing passing
	passed  uint64
	// resumption is how it was resumed; nil: not yet by Process.Resume.
	resumption Resumption
	// Raise is a signal that it receives when it is resumed; nil: none.
	Raise *PendingSignal
}

// Final has the state of a thread that parking changes.
type Final struct {
	Regs   ptrace.Registers
	Inside uint64 // its frame in the engine, 0 if it was not there
	Signal int    // the signal that ended the process, if this thread received it
	// Info is the signal's siginfo, if an instruction raised it.
	Info *ptrace.Siginfo
}

// PendingSignal is a signal that a thread receives when it is resumed.
type PendingSignal struct {
	Signal syscall.Signal
	Info   ptrace.Siginfo
}
