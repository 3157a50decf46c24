package explore

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// plan is the instructions for a replay: when the code between two events runs, and where
// threads are preempted. The preemptions of a step are in the order in which its thread reaches
// them.
type plan struct {
	timing record.Timing
	list   []eventlog.Preemption
	fine   bool // a preemption was added to reverse a race between accesses
}

func (p plan) with(list []eventlog.Preemption) plan { return plan{p.timing, list, p.fine} }

// hold delays a thread right after an event. It replaces a preemption that the plan had there.
func (p plan) hold(s step, until uint64) plan {
	add := eventlog.Preemption{Thread: s.thread, Ordinal: s.ordinal, Class: eventlog.PointEvent, Until: until}
	list := slices.DeleteFunc(slices.Clone(p.list), func(x eventlog.Preemption) bool {
		return x.Thread == s.thread && x.Ordinal == s.ordinal && x.Class == eventlog.PointEvent
	})
	// A hold comes before the other preemptions of its step.
	at := slices.IndexFunc(list, func(x eventlog.Preemption) bool { return x.Thread == s.thread && x.Ordinal == s.ordinal })
	if at < 0 {
		at = len(list)
	}
	return p.with(slices.Insert(list, at, add))
}

// place is an instruction of a step, the number of the arrival there since the previous
// preemption, and the number of the step's preemptions at instructions before that.
type place struct {
	thread  uint32
	ordinal uint64
	pc      evidence.Addr
	count   uint64
	behind  int
}

func (p plan) key() string { return fmt.Sprint(p.timing, p.list) }

// level is the finest level that the plan needs.
func (p plan) level() Level {
	atInstruction := slices.ContainsFunc(p.list, func(x eventlog.Preemption) bool { return x.Class == eventlog.PointPC })
	switch {
	case p.fine && atInstruction:
		return LevelFine
	case len(p.list) > 0:
		return LevelCoarse
	}
	return LevelPlain
}

// preempt adds a preemption at an instruction, after all those of other threads that last until
// the same position. Preemptions after the place in the same step are removed: they were for
// another path. A preemption that is already there ends later. It returns false if the place
// cannot be identified.
func (p plan) preempt(at place, until uint64) (plan, bool) {
	if at.count == 0 && at.behind > 0 {
		return p.later(at, until)
	}
	if at.count == 0 || at.pc == 0 {
		return p, false
	}
	own := 0
	list := slices.DeleteFunc(slices.Clone(p.list), func(x eventlog.Preemption) bool {
		if x.Thread != at.thread || x.Ordinal != at.ordinal || x.Class != eventlog.PointPC {
			return false
		}
		own++
		return own > at.behind
	})
	add := eventlog.Preemption{Thread: at.thread, Ordinal: at.ordinal, Class: eventlog.PointPC, PC: at.pc, Count: at.count, Until: until}
	return p.with(append(list, add)), true
}

// later makes the plan's preemption at the place end later.
func (p plan) later(at place, until uint64) (plan, bool) {
	own := 0
	var there *eventlog.Preemption
	list := slices.DeleteFunc(slices.Clone(p.list), func(x eventlog.Preemption) bool {
		if x.Thread != at.thread || x.Ordinal != at.ordinal || x.Class != eventlog.PointPC {
			return false
		}
		if own++; own == at.behind {
			there = &x
		}
		return own >= at.behind
	})
	if there == nil || there.PC != at.pc || until <= there.Until {
		return p, false
	}
	there.Until = until
	return p.with(append(list, *there)), true
}

// without removes one preemption. If the next one of the same step is at the same instruction,
// its count now starts where that of the removed one started.
func (p plan) without(i int) plan {
	list := slices.Clone(p.list)
	gone := list[i]
	list = slices.Delete(list, i, i+1)
	if gone.Class == eventlog.PointPC {
		for j := i; j < len(list); j++ {
			x := &list[j]
			if x.Thread == gone.Thread && x.Ordinal == gone.Ordinal {
				if x.PC == gone.PC {
					x.Count += gone.Count
				}
				break
			}
		}
	}
	return p.with(list)
}

// points counts the preemptions at instructions of a step.
func (p plan) points(s step) int {
	n := 0
	for _, x := range p.list {
		if x.Thread == s.thread && x.Ordinal == s.ordinal && x.Class == eventlog.PointPC {
			n++
		}
	}
	return n
}
