package patterns

import "diagnose/delta"

// collectNever finds a place that in failing runs reads a variable before any write, while in
// each passing run another place has written it by then. The failing run may have ended before
// that write. (Use before initialisation, a missed notification.)
func (f *finder) collectNever() {
	if len(f.passing) == 0 {
		return
	}
	for k, s := range f.passing[0].found.all() {
		if !s.free || int(present(f.passing, k)) < len(f.passing) {
			continue
		}
		if e, ok := f.never(k); ok {
			f.addEntry(e)
		}
	}
}

// mayLack reports whether failing runs may lack a pattern because they read
// before the write. The caller knows that they do not have it.
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

// alwaysFirst reports whether in each passing run no read there precedes the
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

// unwritten returns a failing run's accesses at the places of a write and its
// read, if the read is first: the read, and the write if one follows.
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
	case write.First < read.First, found.forgotten > 0, found.sightingOf(readFirst(k)) != nil:
		return accesses, 0
	}
	// A place is code of a role: one thread may execute both.
	if all := f.runs.Failing[run].Log.Accesses; all[read.First].Thread == all[write.First].Thread && all[read.First].Handler == all[write.First].Handler {
		return accesses, 0
	}
	return [4]int32{int32(read.First), int32(write.First)}, 2
}

// readFirst is the pattern of a write and its read in the opposite order.
func readFirst(k key) key {
	return key{shape: shapeRW, variable: k.variable, places: [4]delta.Place{k.places[1], k.places[0]}}
}

// never makes the entry, if failing runs read there without such a write
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
		s := f.passing[0].found.sightingOf(k)
		e.locking = lockingOf(f.runs.Passing[0], s.last[:2])
	}
	return e, e.failing > 0
}
