package ask

import (
	"slices"

	"diagnose/evidence"
)

// Coverage is what an answer rests on.
type Coverage struct {
	// Replays counts the replays; Backend is the mechanism that traced writes.
	Replays int    `json:"replays"`
	Backend string `json:"backend,omitempty"`
	// Complete: nothing that was asked for can have happened without a row, except for the rows that were left out.
	Complete bool  `json:"complete"`
	Gaps     []Gap `json:"gaps,omitempty"`
	// Limits are those of the replays.
	Limits []evidence.Limit `json:"limits,omitempty"`
}

// GapKind is why something may have happened without a row.
type GapKind string

// The kinds of gaps.
const (
	// GapPart: only the first Count of Of bytes were watched.
	GapPart GapKind = "part"
	// GapUntraced: nothing was traced, for the reason in Text.
	GapUntraced GapKind = "untraced"
	// GapKnown: only the writes of Count known instructions were seen; Of is how often the value had changed without them.
	GapKnown GapKind = "known-instructions"
	// GapLost: Count writes were lost.
	GapLost GapKind = "lost"
	// GapEnded: the replay ended early, for the reason in Text.
	GapEnded GapKind = "ended"
	// GapKernel: the kernel may have written the value that was already there. Each change of the value has a row.
	GapKernel GapKind = "kernel"
	// GapProcesses: other processes share memory with it, or made calls that the recorder does not know.
	GapProcesses GapKind = "other-processes"
	// GapRegister: in other parts of its function the variable is in a register, or nowhere.
	GapRegister GapKind = "register"
	// GapUnreachable: threads could not be stopped at Count places.
	GapUnreachable GapKind = "unreachable"
	// GapReturns: Count returns were not seen.
	GapReturns GapKind = "returns"
	// GapFunctions: calls of functions are not shown, for the reason in Text.
	GapFunctions GapKind = "functions"
	// GapLibraries: functions of libraries without debug information, and inlined ones, are not shown.
	GapLibraries GapKind = "libraries"
	// GapOrder: writes of one thread between two of its events were seen by several replays, so their order is not known.
	GapOrder GapKind = "order"
	// GapBetween: the values depend on more memory than one replay can watch, so of those between two events of a thread there is
	// only the last one.
	GapBetween GapKind = "between-events"
	// GapWords: the expression depends on more than Count words of memory, and others were not watched.
	GapWords GapKind = "words"
)

// Gap is a reason why something may have happened without a row.
type Gap struct {
	// Kind says which reason it is, Count and Of have its numbers.
	Kind  GapKind `json:"kind"`
	Count uint64  `json:"count,omitempty"`
	Of    uint64  `json:"of,omitempty"`
	// Text is the reason of another part of the tool.
	Text string `json:"text,omitempty"`
}

// harmless are the gaps through which no change of a value can be missed.
func (g *Gap) harmless() bool { return g.Kind == GapLibraries || g.Kind == GapOrder }

// gap adds a gap once.
func (c *Coverage) gap(g Gap) {
	if !slices.Contains(c.Gaps, g) {
		c.Gaps = append(c.Gaps, g)
	}
}

// Unchanged reports whether all that may have happened without a row are writes by the kernel of the value that was already there.
func (c *Coverage) Unchanged() bool {
	return !c.otherState() && !slices.ContainsFunc(c.Gaps, func(g Gap) bool { return !g.harmless() && g.Kind != GapKernel })
}

func (c *Coverage) limits(list []evidence.Limit) {
	for _, l := range list {
		c.Limits = evidence.AddLimit(c.Limits, l)
	}
}

// otherState reports whether the replays show another state than was recorded.
func (c *Coverage) otherState() bool {
	return evidence.LimitOf(c.Limits, evidence.LimitOtherState) != nil
}

// finish decides whether the answer is complete.
func (c *Coverage) finish() {
	c.Complete = !c.otherState()
	for i := range c.Gaps {
		c.Complete = c.Complete && c.Gaps[i].harmless()
	}
}
