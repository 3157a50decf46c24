package provenance

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
)

// Stale finds the heap objects that a thread used after they had been freed. For each place that freed some it has the
// one that was used last, as a way to the first use of it; the place that is the nearest to the end of the trace is the
// first. Of a runtime's functions only accesses count whose pointer was derived from that object: string functions read
// whole vectors, and so a part of what lies beside theirs.
func Stale(t *flow.Trace, p Program, thread uint32) []*Way {
	f := &follower{trace: t, program: p}
	type use struct {
		way  *Way
		last int
	}
	uses := map[*flow.Object]*use{}
	start, end := t.FreedRange()
	for n := range t.Len() {
		s := t.Step(n)
		if s.Thread != thread || s.Inst == nil {
			continue
		}
		for k := range s.Inst.Operands {
			o := &s.Inst.Operands[k]
			if !o.IsMemory || o.Access == "" || o.Implicit {
				continue
			}
			l, known := t.Extent(n, k)
			if !known || l.Size == 0 || l.Addr < start || l.Addr >= end {
				continue
			}
			object := f.stale(n, k, l)
			switch seen := uses[object]; {
			case object == nil:
			case seen != nil:
				seen.last = n
			default:
				f.way = &Way{Object: object, Call: object.FreedBy, AccessPC: f.ownPlace(n), Write: o.Access.Writes()}
				f.end(Freed, object.Freed)
				uses[object] = &use{f.way, n}
			}
		}
	}
	byPlace := map[evidence.Addr]*use{}
	for _, u := range uses {
		if other := byPlace[u.way.PC]; other == nil || other.last < u.last {
			byPlace[u.way.PC] = u
		}
	}
	list := make([]*use, 0, len(byPlace))
	for _, u := range byPlace {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b *use) int { return cmp.Compare(b.last, a.last) })
	ways := make([]*Way, len(list))
	for i, u := range list {
		ways[i] = u.way
	}
	return ways
}

// stale is the heap object that operand k of step n, which accesses the bytes l, is wholly in and that had been freed by then; nil: there is none.
func (f *follower) stale(n, k int, l flow.Location) *flow.Object {
	object := f.trace.ObjectAt(l.Addr, n)
	if object == nil || object.Freed < 0 || object.Freed >= n || object.Mapped() {
		return nil
	}
	s := f.trace.Step(n)
	own := f.program.Own(s.PC)
	if own && l.Addr+evidence.Addr(l.Size) > object.Addr+evidence.Addr(object.Size) {
		return nil
	}
	switch from := f.pointee(n, k); {
	case from == object, from == nil && own:
		return object
	}
	return nil // the pointer is not known, or left another object, which is another mistake
}
