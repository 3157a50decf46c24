package verdict

import (
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/watchtrace"
)

// firstValue reports that a store gave a local variable, or a part of an object of the
// heap, its first value. To undo it would leave there what others happened to leave, by
// which a run may go well or fail in any way: that proves nothing about the value.
func (ce *chainExperiments) firstValue(l *link) bool {
	if ce.chain.victim.damaged() || l.bounds != "" {
		return false
	}
	if heap, err := agent.Open(ce.chain.Process, 0); err == nil && heap.InObjects(l.victim.start) {
		return firstOfObject(&l.victim, l.log, &l.access)
	}
	owner := ce.ownerOf(l)
	if owner == nil {
		return false
	}
	first, err := ce.unsetBefore(l, owner)
	if err != nil {
		ce.chain.progress.failedPart(err)
		return true
	}
	return first
}

// firstOfObject looks whether the heap was the last to do something to a part of an
// object before a store: none is known before the object's first.
func firstOfObject(v *victim, log *evidence.AccessLog, store *evidence.Access) bool {
	at := slices.Index(log.Accesses, *store)
	for i := at - 1; i >= 0; i-- {
		a := &log.Accesses[i]
		if !writesMemory(a.Kind) || !v.concerns(log, a) || sameStore(log, a, store) {
			continue
		}
		return a.By == evidence.ByHeap
	}
	return true
}

// sameStore reports whether two accesses are of one store, of which several instructions,
// or repetitions of one, each make a part.
func sameStore(log *evidence.AccessLog, a, b *evidence.Access) bool {
	return a.By == b.By && a.Thread == b.Thread && a.Position == b.Position && (a.PC == b.PC && a.Offset != b.Offset || sameCall(log, a, b))
}

// ownerOf is the frame, at the store, that the link's victim lies in; nil if in none.
func (ce *chainExperiments) ownerOf(l *link) *evidence.Frame {
	at := l.victim.start
	m := ce.chain.Process.MappingAt(at)
	for i := range l.seen.Stack.Frames {
		f := &l.seen.Stack.Frames[i]
		if f.Kind != evidence.Physical || f.CFA == 0 || at >= f.CFA {
			continue
		}
		if m == nil || !m.Contains(f.CFA-1) || f.CFA-at > maxFrame {
			return nil
		}
		return f
	}
	return nil
}

// unsetBefore looks whether anything was stored in the link's victim between the call
// that made its frame, which is when the return address was put there, and the store.
func (ce *chainExperiments) unsetBefore(l *link, owner *evidence.Frame) (bool, error) {
	called := watchtrace.Target{Name: "the return address", Addr: owner.CFA - wordSize, Size: wordSize, Writes: true, Group: "frame"}
	local := l.victim.target()
	local.Group = called.Group
	_, log, err := ce.chain.tracer.trace(ce.chain.rec, []watchtrace.Target{local, called}, ce.chain.tracer.options("the frame of "+l.victim.name))
	if err != nil {
		return true, err
	}
	at := l.indexIn(log)
	own := len(l.hits) // the store itself, which several instructions may have made
	for ; at >= 0; at-- {
		a := &log.Accesses[at]
		word := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
		switch {
		case !writesMemory(a.Kind):
		case word == called.Addr:
			return true, nil
		case !l.victim.concerns(log, a) || a.By == evidence.ByHeap: // the recorder's code has frames there, too
		case own > 0:
			own--
		default:
			return false, nil
		}
	}
	return true, nil
}
