package replay

import "diagnose/replay/ptrace"

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
