package explore

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// plan is what a replay is told: when the code between two events runs, and where
// threads are preempted. The preemptions of a step are in the order in which its
// thread comes to them.
type plan struct {
	timing record.Timing
	list   []record.Preemption
	fine   bool // one was to reverse a race between accesses
}

func (p plan) with(list []record.Preemption) plan { return plan{p.timing, list, p.fine} }

// hold keeps a thread back behind an event, instead of what the plan had there
// right behind it.
func (p plan) hold(s step, until uint64) plan {
	add := record.Preemption{Thread: s.thread, Ordinal: s.ordinal, Class: record.PointEvent, Until: until}
	list := slices.DeleteFunc(slices.Clone(p.list), func(x record.Preemption) bool {
		return x.Thread == s.thread && x.Ordinal == s.ordinal && x.Class == record.PointEvent
	})
	// A hold comes before the other preemptions of its step.
	at := slices.IndexFunc(list, func(x record.Preemption) bool { return x.Thread == s.thread && x.Ordinal == s.ordinal })
	if at < 0 {
		at = len(list)
	}
	return p.with(slices.Insert(list, at, add))
}

// place is an instruction of a step, and which arrival there since the
// preemption before it, of which the step has so many at instructions.
type place struct {
	thread  uint32
	ordinal uint64
	pc      evidence.Addr
	count   uint64
	behind  int
}

func (p plan) key() string { return fmt.Sprint(p.timing, p.list) }

// level is the finest that the plan needs.
func (p plan) level() Level {
	atInstruction := slices.ContainsFunc(p.list, func(x record.Preemption) bool { return x.Class == record.PointPC })
	switch {
	case p.fine && atInstruction:
		return LevelFine
	case len(p.list) > 0:
		return LevelCoarse
	}
	return LevelPlain
}

// preempt adds a preemption at an instruction, behind all that the plan has for
// other threads until the same position. What the plan has of the step behind the
// place is left out: it was for another way. One that is there ends later. False: the
// place cannot be told.
func (p plan) preempt(at place, until uint64) (plan, bool) {
	if at.count == 0 && at.behind > 0 {
		return p.later(at, until)
	}
	if at.count == 0 || at.pc == 0 {
		return p, false
	}
	own := 0
	list := slices.DeleteFunc(slices.Clone(p.list), func(x record.Preemption) bool {
		if x.Thread != at.thread || x.Ordinal != at.ordinal || x.Class != record.PointPC {
			return false
		}
		own++
		return own > at.behind
	})
	add := record.Preemption{Thread: at.thread, Ordinal: at.ordinal, Class: record.PointPC, PC: at.pc, Count: at.count, Until: until}
	return p.with(append(list, add)), true
}

// later makes a preemption of the plan, at which the place is, end later.
func (p plan) later(at place, until uint64) (plan, bool) {
	own := 0
	var there *record.Preemption
	list := slices.DeleteFunc(slices.Clone(p.list), func(x record.Preemption) bool {
		if x.Thread != at.thread || x.Ordinal != at.ordinal || x.Class != record.PointPC {
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

// without leaves out one preemption. The count of one behind it in the same step at
// the same instruction goes on from where the other stood.
func (p plan) without(i int) plan {
	list := slices.Clone(p.list)
	gone := list[i]
	list = slices.Delete(list, i, i+1)
	if gone.Class == record.PointPC {
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
		if x.Thread == s.thread && x.Ordinal == s.ordinal && x.Class == record.PointPC {
			n++
		}
	}
	return n
}
