package provenance

import (
	"diagnose/flow"
	"diagnose/image/x86"
)

// restored notes a store on the way, of a value that has only been copied since, and whether it is one to memory that got the value again
// later. A place on the stack may be another variable's at each time, so it does not count.
func (f *follower) restored(d flow.Definition) {
	if later, again := f.held[d.Part]; again && f.trace.ObjectAt(d.Part.Addr, d.At+1) == f.trace.ObjectAt(d.Part.Addr, later+1) && f.changed(d, later) {
		f.way.Restored = true
	}
	if f.held == nil {
		f.held = map[flow.Location]int{}
	}
	if at := d.Part.Addr; uint64(at) < f.trace.Register(d.At, x86.RSP) || f.trace.ObjectAt(at, d.At+1) != nil {
		f.held[d.Part] = d.At
	}
}

// changed reports whether memory that was stored to at two steps had another value in between.
func (f *steps) changed(d flow.Definition, later int) bool {
	value, known := f.value(d.Part, d.At+1)
	if !known { // not of a vector register's store
		value, known = f.value(d.Part, later+1)
	}
	for n := later; known && n > d.At; {
		before := f.trace.Define(d.Part, n)
		if before.At < d.At || before.At >= n {
			return false
		}
		other, known := f.value(d.Part, before.At+1)
		if !known {
			return false
		}
		if other != value {
			return true
		}
		n = before.At
	}
	return false
}
