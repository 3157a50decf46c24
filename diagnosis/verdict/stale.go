package verdict

import (
	"diagnose/evidence"
	"diagnose/watchtrace"
)

// stale reports whether the store that a change was made to went through a stale pointer: into an
// object of the heap, by a pointer that was stored before that memory was freed and allocated again. The
// cause is then that free, or that the pointer was kept, and not what was stored.
func (ce *chainExperiments) stale(x *change) bool {
	if x.link < 0 || ce.chain.victim.damaged() {
		return false
	}
	l := &ce.chain.links[min(x.link, ce.headline())]
	holder := l.store.Holder
	if l.returned != nil || l.access.By != evidence.ByProgram || holder == nil || ce.chain.Object == nil || ce.chain.Object(l.word()) == nil {
		return false
	}
	const together = "the pointer and the memory"
	targets := []watchtrace.Target{
		{Name: "the memory", Addr: l.word(), Size: int(l.access.Size), Writes: true, Group: together},
		{Name: "the pointer", Addr: *holder, Size: wordSize, Writes: true, Group: together},
	}
	_, log, err := ce.chain.tracer.trace(ce.chain.rec, targets, ce.chain.tracer.options("the pointer by which "+where(&l.seen)+" stores"))
	if err != nil {
		ce.chain.progress.failedPart(err)
		return false
	}
	return freedSince(log, &l.access)
}

// freedSince reports whether the heap wrote to the memory, the first variable of a log, after the last store to
// the pointer, the second, and before a store through the pointer.
func freedSince(log *evidence.AccessLog, store *evidence.Access) bool {
	stored := lastStore(log, func(a *evidence.Access) bool {
		return a.Variable == 0 && a.PC == store.PC && a.Thread == store.Thread && a.Ordinal == store.Ordinal && a.New == store.New
	})
	for i := stored - 1; i >= 0; i-- {
		switch a := &log.Accesses[i]; {
		case !writesMemory(a.Kind):
		case a.Variable == 1:
			return false
		case a.By == evidence.ByHeap:
			return true
		}
	}
	return false
}
