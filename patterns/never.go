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
		if k.shape != shapeWR || s.free == 0 || present(f.passing, k) < len(f.passing) || present(f.failing, k) > 0 {
			continue
		}
		if !f.alwaysFirst(k) {
			continue
		}
		if c, ok := f.never(k); ok {
			f.result.Candidates = append(f.result.Candidates, c)
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

// never makes the candidate, if failing runs read there and have no such write
// before.
func (f *finder) never(k key) (Candidate, bool) {
	reversed := key{shape: shapeRW, variable: k.variable, places: [4]delta.Place{k.places[1], k.places[0]}}
	c := Candidate{Run: -1}
	count := 0
	for i, p := range f.d.Failing {
		read, ok := p.Span(k.variable, k.places[1], false)
		if !ok {
			continue
		}
		write, written := p.Span(k.variable, k.places[0], true)
		if written && write.First < read.First || f.failing[i].found[reversed] != nil {
			continue
		}
		count++
		if c.Run < 0 {
			c = f.candidate(reversed, i, &sighting{last: [4]int32{int32(read.Last), int32(read.Last)}})
			c.Accesses, c.Never = c.Accesses[:1], !written
			if written {
				c.Accesses = []int{read.First, write.First}
			}
		}
	}
	if count == 0 {
		return c, false
	}
	c.FailingRuns, c.Reversed = count, true
	s := f.passing[0].found[k]
	l := lockingOf(f.runs.Passing[0], s.last[:2])
	c.Guard, c.Missing = lockName(l.guard), lockName(l.missing)
	return c, true
}
