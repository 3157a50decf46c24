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
	f := newFollower(t, p)
	type use struct {
		way          *Way
		last, writes int
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
			if !accessesMemory(o) {
				continue
			}
			l, known := t.Extent(n, k)
			if !known || l.Size == 0 || l.Addr < start || l.Addr >= end {
				continue
			}
			object := f.stale(n, k, l)
			if object == nil {
				continue
			}
			u := uses[object]
			if u == nil {
				f.way = &Way{Object: object, Call: object.FreedBy, AccessPC: f.ownPlace(n), Write: o.Access.Writes()}
				f.end(Freed, object.Freed)
				u = &use{way: f.way}
				uses[object] = u
			}
			u.last = n
			if o.Access.Writes() && !u.way.Lost && u.writes < mostLost {
				u.writes++
				u.way.Lost = f.moved(object, l)
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

// mostLost bounds the stores to one freed object that are looked at for whether they are lost.
const mostLost = 16

// moved reports whether the bytes l of an object had been copied to the same place of another one when it was freed, as code does that makes
// an object larger.
func (f *steps) moved(o *flow.Object, l flow.Location) bool {
	const most = 64 // objects, and copies from one to the other
	n := o.Freed
	for range most {
		made := f.trace.MadeBefore(n + 1)
		if made == nil {
			return false
		}
		n = made.Made - 1
		if made == o || made.Freed >= 0 && made.Freed <= o.Freed || uint64(l.Addr-o.Addr)+uint64(l.Size) > made.Size {
			continue
		}
		at, from := o.Freed+1, flow.Memory(made.Addr+(l.Addr-o.Addr), l.Size)
		for range most {
			d := f.trace.Define(from, at)
			if d.Kind != flow.Copied || len(d.From) == 0 {
				break
			}
			if at, from = d.At, d.From[0]; from.Space == l.Space && from.Addr == l.Addr {
				return true
			}
		}
	}
	return false
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
