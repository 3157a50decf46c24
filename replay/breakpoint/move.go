package breakpoint

import "diagnose/replay/ptrace"

// Move is what happens to a thread after a stop.
type Move struct {
	Kind MoveKind
	// Signal is delivered to the thread when it resumes (info: its siginfo); 0: none.
	Signal int
	Info   *ptrace.Siginfo
	// Step: the thread executes one instruction, then trap is called.
	Step bool
}

type MoveKind uint8

const (
	Continues MoveKind = iota // the thread continues
	Holds                     // it has reached its end and is parked in the engine
	Arrived                   // it has reached the place of breakAt
	Preempts                  // it has reached a preemption
	Foreign                   // the stop is not the placer's
)
