package evidence

import "fmt"

// NextTool is what to do with the program to learn more of a failure that was not recorded.
type NextTool string

// The tools.
const (
	// NextRecord records one run.
	NextRecord NextTool = "record"
	// NextRepeat records runs until one fails, and keeps one that passes.
	NextRepeat NextTool = "record-repeat"
	// NextHunt searches orders of threads for one that fails.
	NextHunt NextTool = "hunt"
	// NextRun runs the program with the agent's heap.
	NextRun NextTool = "run"
)

// NextReason is why that would tell more.
type NextReason string

// The reasons.
const (
	// NextForValue: replays of a recording follow the bad value to the instruction that made it.
	NextForValue NextReason = "bad-value"
	// NextForOrder: several threads ran, whose order may decide, which a run that passes shows.
	NextForOrder NextReason = "order"
	// NextForLocks: threads wait for each other, which depends on their order.
	NextForLocks NextReason = "locks"
	// NextForHeap: memory of malloc was misused before the failure, which the agent notices.
	NextForHeap NextReason = "heap"
)

// NextNeed is what the program must be before the step is possible.
type NextNeed string

// The needs.
const (
	// NeedDynamicLinking: the program is statically linked, and the agent and the recorder are loaded by the dynamic linker.
	NeedDynamicLinking NextNeed = "dynamic-linking"
	// NeedGlibc: the program's C library is musl, and the agent and the recorder are for glibc.
	NeedGlibc NextNeed = "glibc"
)

// Next is the one step that is the most likely to tell more of a failure.
type Next struct {
	Tool   NextTool   `json:"tool"`
	Reason NextReason `json:"reason"`
	// Need is empty where the step is possible with the program as it is.
	Need NextNeed `json:"need,omitempty"`
}

func (n *Next) check() error {
	if n != nil && (n.Tool == "" || n.Reason == "") {
		return fmt.Errorf("the next step has no tool or no reason")
	}
	return nil
}
