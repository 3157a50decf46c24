package ask

import (
	"fmt"
	"math"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
	"diagnose/watchtrace"
)

// The targets of a trace of writes.
const (
	targetMemory = iota
	targetBirth
)

// writes answers FormWrites and FormLastWrite.
func (a *asker) writes() error {
	var x *addressed
	var o *owner
	err := a.stand(func(p *image.Process) (err error) {
		if x, err = address(p, a.q.Asked); err == nil {
			o = ownerOf(p, x, a.code)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.answer.Memory = o.memory
	t, err := a.traceWrites(x, o)
	if err != nil {
		return err
	}
	indices := t.own()
	t.covers(x)
	if a.q.Form == FormLastWrite && len(indices) > 0 {
		indices = indices[len(indices)-1:]
	} else if n := len(indices) - a.q.Most; a.q.Most > 0 && n > 0 {
		a.answer.LeftOut, indices = uint64(n), indices[n:]
	}
	if err := t.rows(x, o, indices); err != nil {
		return err
	}
	if a.q.Form == FormLastWrite && len(indices) > 0 {
		return t.details(indices[0])
	}
	return nil
}

// tracedWrites are the writes of memory, and the begins of its owners' lives.
type tracedWrites struct {
	*asker
	plan *watchtrace.Plan
	log  *evidence.AccessLog
	// begin is the index of the access with which the owner's life begins; -1: it has none.
	begin int
}

// options are those of every trace.
func (a *asker) options() watchtrace.Options {
	return watchtrace.Options{Known: true, From: a.q.From, Until: a.q.Until, Image: a.q.Image, Progress: func(p watchtrace.Progress) {
		a.progress(Progress{Stage: StageWatch, Done: uint64(p.Done), Total: uint64(p.Passes), Rows: p.Hits})
	}}
}

// trace replays the recording with watches on the writes of targets.
func (a *asker) trace(targets []watchtrace.Target) (*tracedWrites, error) {
	for i := range targets {
		targets[i].Writes = true
	}
	plan, err := watchtrace.NewPlan(a.rec, targets, a.options())
	if err != nil {
		return nil, err
	}
	t := &tracedWrites{asker: a, plan: plan, begin: -1}
	if t.log, err = plan.Trace(a.ctx); err != nil {
		return nil, err
	}
	c := &a.answer.Coverage
	c.Replays += t.log.Passes
	c.Backend = t.log.Backend
	c.limits(t.log.Limits)
	return t, nil
}

func (a *asker) traceWrites(x *addressed, o *owner) (*tracedWrites, error) {
	targets := []watchtrace.Target{{Name: a.q.Asked, Addr: x.addr, Size: x.size}}
	if o.birth != 0 {
		targets = append(targets, watchtrace.Target{Name: fmt.Sprintf("%v:%d", o.birth, o.birthSize), Addr: o.birth, Size: o.birthSize})
	}
	t, err := a.trace(targets)
	if err != nil {
		return nil, err
	}
	t.findBegin(o, targetBirth)
	return t, nil
}

// findBegin finds the begin of the owner's life, the last one before the end of the span. birth is the target of the
// word that says so.
func (t *tracedWrites) findBegin(o *owner, birth int) {
	if o.birth == 0 {
		return
	}
	v := &t.log.Variables[birth]
	if v.Partial() {
		o.memory.Proof = evidence.Inferred
		return
	}
	for i := len(t.log.Accesses) - 1; i >= 0; i-- {
		if x := &t.log.Accesses[i]; int(x.Variable) == birth && o.begins(x) {
			t.begin = i
			since := instant(evidence.Moment{Thread: x.Thread, Ordinal: x.Ordinal}, x.Position)
			o.memory.Since = &since
			return
		}
	}
	o.memory.Proof = evidence.Inferred // it began before the first instruction that was traced, or is something else
}

// own returns the indices of the writes of the expression in the span, and counts those of other owners.
func (t *tracedWrites) own() []int {
	var list []int
	for i := range t.log.Accesses {
		x := &t.log.Accesses[i]
		switch {
		case x.Variable != targetMemory || x.Kind == evidence.CodeRead || !t.plan.Since(x):
		case i < t.begin:
			t.answer.Memory.Earlier++
		default:
			list = append(list, i)
		}
	}
	return list
}

// covers notes what the trace cannot have seen of the memory.
func (t *tracedWrites) covers(x *addressed) {
	c := &t.answer.Coverage
	if x.subject != nil && x.listed() {
		c.gap(Gap{Kind: GapRegister})
	}
	t.gaps(targetMemory)
}

// gaps notes what the trace cannot have seen of a target.
func (t *tracedWrites) gaps(target int) {
	c, v := &t.answer.Coverage, &t.log.Variables[target]
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

// kernelMayWrite reports whether the kernel may have written to a target in the span, other than the results
// of calls, which replays copy from the log.
func (t *tracedWrites) kernelMayWrite(v *evidence.Watched) bool {
	until := uint64(math.MaxUint64)
	if t.q.Until != nil {
		until = t.asker.log.until
	}
	return slices.ContainsFunc(t.log.Calls, func(c evidence.Call) bool {
		inside := c.Start < v.Address+evidence.Addr(v.Size) && (c.Size == math.MaxUint64 || uint64(c.Start)+c.Size > uint64(v.Address))
		return inside && c.Position >= t.asker.log.from && c.Position <= until
	})
}

// rows adds the writes with these indices.
func (t *tracedWrites) rows(x *addressed, o *owner, indices []int) error {
	calls, err := watchtrace.Calls(t.rec, t.log)
	if err != nil {
		return err
	}
	freed := t.frees(o)
	moments := watchtrace.Moments(t.code(), t.log, indices)
	for n, i := range indices {
		access := &t.log.Accesses[i]
		w := Write{Instant: instant(moments[n], access.Position), Thread: access.Thread, Address: x.addr + evidence.Addr(access.Offset), Size: int(access.Size),
			Site: t.log.Contexts[access.Context].Site, Locks: t.log.LockSets[access.Locks], Signal: int(access.Handler), Late: access.Unseen(), Freed: freed >= 0 && i > freed}
		w.By, w.Call = authorOf(access, calls)
		t.describe(x, access, &w)
		t.answer.Writes = append(t.answer.Writes, w)
	}
	return nil
}

// frees returns the index of the access with which the object of the owner was freed; -1: it was not.
func (t *tracedWrites) frees(o *owner) int {
	if o.live == nil {
		return -1
	}
	for i := t.begin + 1; i < len(t.log.Accesses); i++ {
		if x := &t.log.Accesses[i]; x.Variable == targetBirth && o.live(x.Old) && !o.live(x.New) {
			return i
		}
	}
	return -1
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

// describe names the part that was written, and its values in the part's type.
func (t *tracedWrites) describe(x *addressed, a *evidence.Access, w *Write) {
	typ := x.typ
	if x.size != int(a.Size) {
		path, leaf, ok := "", x.typ, false
		if x.typ != nil {
			path, leaf, ok = value.Path(x.typ, int64(a.Offset), int(a.Size))
		}
		if w.Part = fmt.Sprintf("%s+%#x", t.q.Asked, a.Offset); ok {
			w.Part = t.q.Asked + path
		}
		typ = leaf
	}
	w.Old, w.New = watchtrace.TextOf(t.code(), a.Old, typ, int(a.Size)), watchtrace.TextOf(t.code(), a.New, typ, int(a.Size))
}

// details adds the stack and the full moment of the one write.
func (t *tracedWrites) details(index int) error {
	t.progress(Progress{Stage: StageDetails})
	t.answer.Coverage.Replays++
	seen, err := t.plan.Details(t.ctx, t.log, []int{index})
	if err != nil {
		return err
	}
	w := &t.answer.Writes[0]
	w.Stack = &seen[0].Stack
	if seen[0].Site != nil {
		w.Site = *seen[0].Site
	}
	return nil
}
