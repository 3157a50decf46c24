package ask

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"diagnose/evidence"
	"diagnose/watchtrace"
)

// trace is a log of writes, made by the passes of one plan. Within a pass the order is that of the replay. What passes saw of one
// thread between two of its events is in no order.
type trace struct {
	asker *asker
	plan  *watchtrace.Plan
	log   *evidence.AccessLog
	// begin is the index of the access with which the life of the owner begins; -1: there is none.
	begin int
	// birth is the target of the word that says so, or the number of targets.
	birth int
	// offset is that of the first target in the memory that is asked about.
	offset int
}

// options are those of every trace.
func (a *asker) options() watchtrace.Options {
	return watchtrace.Options{Known: true, From: a.q.From, Until: a.q.Until, Image: a.q.Image, Progress: func(p watchtrace.Progress) {
		a.progress(Progress{Stage: StageWatch, Done: uint64(p.Done), Total: uint64(p.Passes), Rows: p.Hits})
	}}
}

// planned plans a trace of the writes of targets, and of the word with which the life of their owner begins.
func (a *asker) planned(targets []watchtrace.Target, o *owner) (*trace, error) {
	t := &trace{asker: a, begin: -1, birth: len(targets)}
	if o != nil && o.birth != 0 {
		targets = append(slices.Clone(targets), watchtrace.Target{Name: fmt.Sprintf("%v:%d", o.birth, o.birthSize), Addr: o.birth, Size: o.birthSize})
	}
	for i := range targets {
		targets[i].Writes = true
	}
	var err error
	t.plan, err = watchtrace.NewPlan(a.rec, targets, a.options())
	return t, err
}

// run replays the recording, and finds the begin of the owner's life.
func (t *trace) run(o *owner) error {
	var err error
	if t.log, err = t.plan.Trace(t.asker.ctx); err != nil {
		return err
	}
	c := &t.asker.answer.Coverage
	c.Replays += t.log.Passes
	if c.Backend == "" {
		c.Backend = t.log.Backend
	}
	c.limits(t.log.Limits)
	if o != nil && o.birth != 0 {
		t.findBegin(o)
	}
	return nil
}

// findBegin finds the begin of the owner's life, the last one before the end of the span.
func (t *trace) findBegin(o *owner) {
	if t.log.Variables[t.birth].Partial() {
		o.memory.Proof = evidence.Inferred
		return
	}
	for i := len(t.log.Accesses) - 1; i >= 0; i-- {
		if x := &t.log.Accesses[i]; int(x.Variable) == t.birth && o.begins(x) {
			t.begin = i
			since := t.at(i)
			o.memory.Since = &since
			return
		}
	}
	o.memory.Proof = evidence.Inferred // it began before the first instruction that was traced, or is something else
}

// at is when an access was made, without its instruction.
func (t *trace) at(index int) Instant {
	x := &t.log.Accesses[index]
	return instant(evidence.Moment{Thread: x.Thread, Ordinal: x.Ordinal}, x.Position)
}

// frees returns the index of the access with which the object of the owner was freed; -1: it was not.
func (t *trace) frees(o *owner) int {
	if o.live == nil {
		return -1
	}
	for i := t.begin + 1; i < len(t.log.Accesses); i++ {
		if x := &t.log.Accesses[i]; int(x.Variable) == t.birth && o.live(x.Old) && !o.live(x.New) {
			return i
		}
	}
	return -1
}

// gaps notes what the trace cannot have seen of a target.
func (t *trace) gaps(target int) {
	c, v := &t.asker.answer.Coverage, &t.log.Variables[target]
	if l := evidence.LimitOf(t.log.Limits, evidence.LimitPartTraced); l != nil && slices.Contains(l.Names, v.Name) {
		c.gap(Gap{Kind: GapPart, Count: l.Count, Of: l.Of})
	}
	switch {
	case v.Untraced != "":
		c.gap(Gap{Kind: GapUntraced, Text: v.Untraced})
	case v.Instructions > 0:
		c.gap(Gap{Kind: GapKnown, Count: uint64(v.Instructions), Of: v.Unseen})
	}
	if v.Lost > 0 {
		c.gap(Gap{Kind: GapLost, Count: v.Lost})
	}
	if l := evidence.LimitOf(t.log.Limits, evidence.LimitPassEnded); l != nil {
		c.gap(Gap{Kind: GapEnded, Text: l.Reason})
	} else if t.log.Cut {
		c.gap(Gap{Kind: GapEnded})
	}
	if t.log.Others {
		c.gap(Gap{Kind: GapProcesses})
	}
	if t.kernelMayWrite(v) {
		c.gap(Gap{Kind: GapKernel})
	}
}

// kernelMayWrite reports whether the kernel may have written to a target in the span, other than the results of calls, which
// replays copy from the log.
func (t *trace) kernelMayWrite(v *evidence.Watched) bool {
	until := uint64(math.MaxUint64)
	if t.asker.q.Until != nil {
		until = t.asker.log.until
	}
	return slices.ContainsFunc(t.log.Calls, func(c evidence.Call) bool {
		inside := c.Start < v.Address+evidence.Addr(v.Size) && (c.Size == math.MaxUint64 || uint64(c.Start)+c.Size > uint64(v.Address))
		return inside && c.Position >= t.asker.log.from && c.Position <= until
	})
}

// owned returns the locks that name the thread as their owner. Of others it is not known for certain which thread holds them.
func (t *trace) owned(x *evidence.Access) []evidence.Lock {
	return slices.DeleteFunc(slices.Clone(t.log.LockSets[x.Locks]), func(l evidence.Lock) bool { return l.Shared || t.asker.log.spinning[l.Address] })
}

func authorOf(x *evidence.Access, calls map[watchtrace.CallKey]string) (Author, string) {
	switch {
	case x.By == evidence.ByHeap:
		return ByHeap, ""
	case x.By == evidence.ByProgram:
		return ByProgram, ""
	case x.Unseen():
		return ByKernel, calls[watchtrace.CallKey{Thread: x.Thread, Ordinal: x.Ordinal}]
	}
	return ByCall, calls[watchtrace.CallKey{Thread: x.Thread, Ordinal: x.Ordinal}]
}

// ordered compares accesses of different logs. 0: they are of one thread between two of its events.
func ordered(a, b *evidence.Access) int {
	if a.Turn != 0 && b.Turn != 0 && a.Turn != b.Turn {
		return cmp.Compare(a.Turn, b.Turn)
	}
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Ordinal, b.Ordinal))
}
