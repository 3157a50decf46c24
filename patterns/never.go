package patterns

import "diagnose/delta"

// collectNever finds what failing runs lack: a place that reads, before any write, what in each
// passing run another place had written by then. It may be that the failing run
// ended before that write. (Use before initialisation, a missed notification.)
func (f *finder) collectNever() {
	if len(f.passing) == 0 {
		return
	}
	for k, s := range f.passing[0].found.all() {
		if !s.free || int(present(f.passing, k)) < len(f.passing) {
			continue
		}
		if e, ok := f.never(k); ok {
			f.add(e)
		}
	}
}

// mayLack reports whether failing runs may lack a pattern, which they are known
// not to have, in that they read before the write.
func (f *finder) mayLack(k key) bool {
	if k.shape != shapeWR || !f.alwaysFirst(k) {
		return false
	}
	for i := range f.failing {
		if _, n := f.unwritten(i, k); n > 0 {
			return true
		}
	}
	return false
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

// unwritten are a failing run's accesses at the places of a write and what reads
// it, if it reads first: the read, and the write if there is one behind it.
func (f *finder) unwritten(run int, k key) (accesses [4]int32, n int32) {
	read, ok := f.d.Failing[run].Span(k.variable, k.places[1], false)
	if !ok {
		return accesses, 0
	}
	write, written := f.d.Failing[run].Span(k.variable, k.places[0], true)
	found := &f.failing[run].found
	switch {
	case !written:
		return [4]int32{int32(read.Last)}, 1
	case write.First < read.First, found.forgotten > 0, found.find(readFirst(k)) != nil:
		return accesses, 0
	}
	// A place is a thread's code: it may be one thread that does both.
	if all := f.runs.Failing[run].Log.Accesses; all[read.First].Thread == all[write.First].Thread && all[read.First].Handler == all[write.First].Handler {
		return accesses, 0
	}
	return [4]int32{int32(read.First), int32(write.First)}, 2
}

// readFirst is what a write and what reads it are in the other order.
func readFirst(k key) key {
	return key{shape: shapeRW, variable: k.variable, places: [4]delta.Place{k.places[1], k.places[0]}}
}

// never makes the entry, if failing runs read there and have no such write
// before.
func (f *finder) never(k key) (entry, bool) {
	e := entry{key: readFirst(k), reversed: true, passingOf: int32(len(f.passing))}
	for i := range f.failing {
		accesses, n := f.unwritten(i, k)
		if n == 0 {
			continue
		}
		if e.failing++; e.failing == 1 {
			e.run, e.accesses, e.seen = int32(i), n, sighting{free: true, last: accesses}
		}
	}
	if e.accesses == 1 {
		s := f.passing[0].found.find(k)
		e.locking = lockingOf(f.runs.Passing[0], s.last[:2])
	}
	return e, e.failing > 0
}
