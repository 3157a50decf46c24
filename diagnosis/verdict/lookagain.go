package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/watchtrace"
)

// secondLook is a plain watch of all stores to a victim, over the whole run.
type secondLook struct {
	log *evidence.AccessLog
	// begin is the index of what began the victim's life: the allocation of its object, or
	// the call that made its frame; -1: the program's start.
	begin int
	// sure: it is known what began it. Else a store may be of before.
	sure bool
}

// confirm looks again at memory of which the chain says that nothing wrote to it. The
// statement stays only if a second look, which knows nothing of which read got the value,
// shows no store either. It is dropped if the look cannot be made.
func (c *chain) confirm(v *victim, made *link) {
	if c.partial || c.Process.MappingAt(v.start) == nil {
		return // no such statement was made
	}
	look, err := c.lookAgain(v, made)
	if err != nil {
		c.progress.failedPart(err)
	}
	stored, earlier := true, false
	if look != nil {
		stored, earlier = c.storedSince(v, look)
	}
	if !stored {
		return
	}
	if earlier && look.sure {
		c.progress.limit(evidence.Limit{Code: evidence.LimitContradicted, Names: []string{v.name}, Addr: v.start})
	}
	c.retract(v)
}

// elsewhere is the memory that the bad value was read from, where that is not the first
// victim, to which nothing was stored: the core's registers and variables gave its address,
// and an index may have changed since. A replay stops at the load to tell; nil: it is the same.
func (c *chain) elsewhere(v *victim) *victim {
	b := c.Blame
	if len(c.links) > 0 || v.damaged() || v.failing || v.readPC != 0 || b == nil || b.Cell == nil || *b.Cell != v.start || b.Loaded.PC == 0 {
		return nil
	}
	now := c.victims.readCell(b.Loaded.PC, b.CellName, nil)
	if now == nil || now.start == v.start || v.value == nil || now.value == nil || *now.value != *v.value {
		return nil
	}
	now.typ, now.readPC = v.typ, b.Loaded.PC
	return now
}

// retract leaves nothing of what allocated has said.
func (c *chain) retract(v *victim) {
	c.end = chainEnd{text: "where the value of " + v.name + " came from is not known", open: evidence.OpenOrigin}
}

// lookAgain makes the second look; nil if it does not show every store.
func (c *chain) lookAgain(v *victim, made *link) (*secondLook, error) {
	plain := v.target()
	plain.Writes = true
	targets := []watchtrace.Target{plain}
	owner := frameOf(c.Case, v.start)
	given := c.startText(v.start) != ""
	switch {
	case given:
		owner = nil // above all frames
	case owner != nil:
		targets[0].Group = "frame"
		targets = append(targets, watchtrace.Target{Name: "the return address", Addr: owner.CFA - wordSize, Size: wordSize, Writes: true, Group: "frame"})
	case onFailingStack(c.Process, v.start):
		return nil, nil
	}
	_, log, err := c.tracer.trace(c.rec, targets, c.tracer.options("a second look at "+v.name))
	if err != nil {
		return nil, err
	}
	if log.Cut || slices.ContainsFunc(log.Variables, func(w evidence.Watched) bool { return w.Partial() }) {
		return nil, nil
	}
	look := &secondLook{log: log, begin: -1, sure: given || c.Process.ModuleAt(v.start) != nil}
	switch {
	case owner != nil:
		look.begin = lastStore(log, func(a *evidence.Access) bool { return wordOf(log, a) == owner.CFA-wordSize })
		look.sure = look.begin >= 0
	case made != nil:
		look.begin = made.indexIn(log)
		look.sure = look.begin >= 0
	default:
		look.begin = lastStore(log, func(a *evidence.Access) bool { return a.By == evidence.ByHeap })
	}
	return look, nil
}

// lastStore is the index of the last store of a kind; -1 if there is none.
func lastStore(log *evidence.AccessLog, is func(*evidence.Access) bool) int {
	for i := len(log.Accesses) - 1; i >= 0; i-- {
		if a := &log.Accesses[i]; writesMemory(a.Kind) && is(a) {
			return i
		}
	}
	return -1
}

// storedSince reports whether there may be a store to a victim since it began and before the bad value had been read. Which was first
// is not known where no event of the program was between; earlier: one is not known to be as late as that.
func (c *chain) storedSince(v *victim, look *secondLook) (stored, earlier bool) {
	log := look.log
	for i := range log.Accesses[look.begin+1:] {
		a := &log.Accesses[look.begin+1+i]
		part := look.begin >= 0 && sameStore(log, a, &log.Accesses[look.begin])
		if !writesMemory(a.Kind) || a.By == evidence.ByHeap || !v.concerns(log, a) || part {
			continue
		}
		if c.had == nil || a.Position <= c.had.Position {
			stored, earlier = true, earlier || c.had == nil || a.Position < c.had.Position
		}
	}
	return stored, earlier
}
