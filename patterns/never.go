package patterns

import "diagnose/delta"

// collectNever finds what failing runs lack: a place that reads, before any write, what in each
// passing run another place had written by then. It may be that the failing run
// ended before that write. (Use before initialisation, a missed notification.)
func (f *finder) collectNever() {
	if len(f.passing) == 0 {
		return
	}
	for k, s := range f.passing[0].found {
		if k.shape != shapeWR || s.free == 0 || int(present(f.passing, k)) < len(f.passing) || present(f.failing, k) > 0 {
			continue
		}
		if !f.alwaysFirst(k) {
			continue
		}
		if e, ok := f.never(k); ok {
			f.add(e)
		}
	}
}

// alwaysFirst reports whether in each passing run nothing reads there before the
// first write.
func (f *finder) alwaysFirst(k key) bool {
	for _, p := range f.d.Passing {
		write, ok1 := p.Span(k.variable, k.places[0], true)
		read, ok2 := p.Span(k.variable, k.places[1], false)
		if !ok1 || !ok2 || read.First < write.First {
			return false
		}
	}
	return true
}

// never makes the entry, if failing runs read there and have no such write
// before.
func (f *finder) never(k key) (entry, bool) {
	e := entry{
		key: key{shape: shapeRW, variable: k.variable, places: [4]delta.Place{k.places[1], k.places[0]}}, reversed: true,
	}
	for i, p := range f.d.Failing {
		read, ok := p.Span(k.variable, k.places[1], false)
		if !ok {
			continue
		}
		write, written := p.Span(k.variable, k.places[0], true)
		if written && write.First < read.First || f.failing[i].found[e.key] != nil {
			continue
		}
		e.failing++
		if e.failing > 1 {
			continue
		}
		e.run, e.accesses, e.seen = int32(i), 1, sighting{count: 1, free: 1, last: [4]int32{int32(read.Last)}}
		if written {
			e.accesses, e.seen.last = 2, [4]int32{int32(read.First), int32(write.First)}
		}
	}
	if e.accesses == 1 {
		s := f.passing[0].found[k]
		e.locking = lockingOf(f.runs.Passing[0], s.last[:2])
	}
	return e, e.failing > 0
}
