package mallocsum

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// leaks are the unreached objects.
type leaks struct {
	*searcher
	list []uint32
	// direct are the objects that no other unreached one leads to, and one of each cycle. owner is that of each object which others lead
	// to, by its place in list: an index into direct.
	direct []uint32
	owner  []int32
}

// Owners of objects that have none.
const (
	ownerNone   = -1 // not reached yet
	ownerItself = -2 // it is a direct one
)

// findLeaks divides the unreached objects.
func findLeaks(s *searcher) *leaks {
	l := &leaks{searcher: s}
	for i := range s.table.objects {
		if s.table.objects[i].reach == unreached {
			l.list = append(l.list, uint32(i))
		}
	}
	l.owner = make([]int32, len(l.list))
	led := make([]bool, len(l.list))
	for i := range l.list {
		l.each(i, func(to int) { led[to] = led[to] || to != i })
	}
	var first, rest []int
	for i := range l.list {
		if led[i] {
			rest = append(rest, i)
		} else {
			first = append(first, i)
		}
	}
	l.divide(first)
	first = append(first, l.cycles(rest)...)
	l.divide(first)
	return l
}

// each calls visit with the unreached objects that one of them has pointers to, by their place in the list.
func (l *leaks) each(i int, visit func(to int)) {
	o := &l.table.objects[l.list[i]]
	l.search(span{o.start, o.start + evidence.Addr(o.size)}, func(_, word evidence.Addr) {
		if j := l.table.at(word); j >= 0 && l.table.objects[j].reach == unreached {
			if to, ok := slices.BinarySearch(l.list, uint32(j)); ok {
				visit(to)
			}
		}
	})
}

// cycles returns one object of each cycle that none of the others leads to. An object from which a later start leads to an earlier one is found
// by starting from the last one first.
func (l *leaks) cycles(rest []int) (list []int) {
	var starts []int
	owner := slices.Clone(l.owner)
	for _, i := range rest {
		if l.owner[i] == ownerNone {
			starts = append(starts, i)
			l.claim(i, 0)
		}
	}
	l.owner = owner
	for _, i := range slices.Backward(starts) {
		if l.owner[i] == ownerNone {
			list = append(list, i)
			l.claim(i, 0)
		}
	}
	slices.Sort(list)
	return list
}

// divide gives each object that the starts lead to to the first of them that does.
func (l *leaks) divide(starts []int) {
	for i := range l.owner {
		l.owner[i] = ownerNone
	}
	l.direct = l.direct[:0]
	for _, i := range starts {
		l.owner[i] = ownerItself
	}
	for n, i := range starts {
		l.direct = append(l.direct, l.list[i])
		l.claim(i, int32(n))
		l.owner[i] = ownerItself
	}
}

// claim gives the objects without an owner that one leads to, and itself, to an owner.
func (l *leaks) claim(start int, owner int32) {
	l.owner[start] = owner
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		l.each(i, func(to int) {
			if l.owner[to] == ownerNone {
				l.owner[to] = owner
				queue = append(queue, to)
			}
		})
	}
}

// leakKey is what the objects of a group have in common.
type leakKey struct {
	kind int32
	size uint64
}

// summary groups the unreached objects.
func (l *leaks) summary(y *typing, most int) *evidence.MallocLeaks {
	out := &evidence.MallocLeaks{Proof: evidence.Inferred, Groups: []evidence.MallocLeak{}}
	groups := map[leakKey]*evidence.MallocLeak{}
	ofDirect := make([]*evidence.MallocLeak, len(l.direct))
	for n, i := range l.direct {
		o := &l.table.objects[i]
		key := leakKey{o.kind, o.size}
		g := groups[key]
		if g == nil {
			g = &evidence.MallocLeak{Type: y.kinds[o.kind], Size: o.size, First: o.start}
			groups[key] = g
		}
		g.Objects++
		ofDirect[n] = g
		out.Direct++
		out.DirectBytes += o.size
	}
	for n, i := range l.list {
		if owner := l.owner[n]; owner >= 0 {
			size := l.table.objects[i].size
			ofDirect[owner].Indirect++
			ofDirect[owner].IndirectBytes += size
			out.Indirect++
			out.IndirectBytes += size
		}
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(x, y evidence.MallocLeak) int {
		return cmp.Or(cmp.Compare(y.Size*y.Objects+y.IndirectBytes, x.Size*x.Objects+x.IndirectBytes), cmp.Compare(x.First, y.First))
	})
	if most > 0 && len(out.Groups) > most {
		out.Elided = len(out.Groups) - most
		out.Groups = out.Groups[:most]
	}
	return out
}
