package patterns

import (
	"fmt"
	"slices"

	"diagnose/delta"
	"diagnose/evidence"
)

// mostShown bounds how many accesses of a candidate's code are looked at in a
// passing run: what comes behind repeats.
const mostShown = 512

// findPassing looks for what passing runs do at the code of each candidate.
func (f *finder) findPassing() {
	list := f.result.Candidates
	for n, run := range f.runs.Passing {
		open := map[int32][]*Candidate{}
		for i := range list {
			c := &list[i]
			if c.PassingRun >= 0 || c.Pattern == evidence.PatternLockOrder || f.passing[n].found[c.key] != nil {
				continue
			}
			open[c.key.variable] = append(open[c.key.variable], c)
			if c.key.shape == shapePair && c.key.second != c.key.variable {
				open[c.key.second] = append(open[c.key.second], c)
			}
		}
		if len(open) > 0 {
			f.look(n, run, open)
		}
	}
	for i := range list {
		if len(f.passing) > 0 && list[i].Instead == "" {
			f.without(&list[i])
		}
	}
}

// look gathers the accesses at the places of the candidates, and makes of them
// what the run does.
func (f *finder) look(n int, run *delta.Run, open map[int32][]*Candidate) {
	seen := map[*Candidate][]int{}
	for i := range run.Log.Accesses {
		a := &run.Log.Accesses[i]
		candidates := open[run.Variable[a.Variable]]
		if candidates == nil {
			continue
		}
		place := run.Place(a)
		for _, c := range candidates {
			if len(seen[c]) < mostShown && slices.Contains(c.key.places[:c.key.shape.accesses()], place) {
				seen[c] = append(seen[c], i)
			}
		}
	}
	for c, indices := range seen {
		f.instead(c, n, run, indices)
	}
}

// steps are the places of a pattern in time, as the failing run has them. The
// first and the last are one context's, if there are more than two.
func (f *finder) steps(c *Candidate) []delta.Place {
	return c.key.places[:c.key.shape.accesses()]
}

// instead says what a passing run does at the places of a candidate.
func (f *finder) instead(c *Candidate, n int, run *delta.Run, indices []int) {
	if c.key.shape <= shapeWW {
		f.insteadTwo(c, n, run, indices)
		return
	}
	f.insteadThree(c, n, run, indices)
}

func (f *finder) insteadTwo(c *Candidate, n int, run *delta.Run, indices []int) {
	first, last := f.at(run, indices, c.key.places[0], c.writes(0)), f.at(run, indices, c.key.places[1], c.writes(1))
	switch {
	case len(first) == 0 && len(last) == 0:
		return
	case len(first) == 0 || len(last) == 0:
		there, missing := first, c.key.places[1]
		if len(first) == 0 {
			there, missing = last, c.key.places[0]
		}
		c.PassingRun, c.Passing = n, there[:1]
		c.Instead = "in passing runs the access of " + f.runs.PlaceText(missing) + " does not happen"
		return
	}
	c.PassingRun = n
	if pair := nearest(last, first); pair != nil {
		c.Passing = pair
		c.Instead = fmt.Sprintf("in passing runs %s comes before %s", f.runs.PlaceText(c.key.places[1]), f.runs.PlaceText(c.key.places[0]))
		return
	}
	c.Passing = nearest(first, last)
	c.Instead = "in passing runs another access comes between the two"
}

// writes reports whether the pattern's access of that number is a write.
func (c *Candidate) writes(n int) bool { return c.Pattern[n] == 'W' }

// at are those of the accesses that are at a place.
func (f *finder) at(run *delta.Run, indices []int, place delta.Place, writes bool) []int {
	var list []int
	for _, i := range indices {
		a := &run.Log.Accesses[i]
		if run.Place(a) == place && (writes && a.Kind != evidence.CodeRead || !writes && a.Kind != evidence.CodeWrite) {
			list = append(list, i)
		}
	}
	return list
}

// nearest is an access of the first list with the next one behind it of the
// second, those that are closest; nil if there are none.
func nearest(first, second []int) []int {
	var best []int
	for _, b := range second {
		n, _ := slices.BinarySearch(first, b)
		if n > 0 && (best == nil || b-first[n-1] < best[1]-best[0]) {
			best = []int{first[n-1], b}
		}
	}
	return best
}

// insteadThree looks for the accesses of one context with nothing of the other's
// places between, and for the other's next to them.
func (f *finder) insteadThree(c *Candidate, n int, run *delta.Run, indices []int) {
	own, others := c.sides()
	var pair []int
	for j, i := range indices {
		a := &run.Log.Accesses[i]
		place := run.Place(a)
		if place != own[1] || pair != nil {
			continue
		}
		for _, p := range slices.Backward(indices[:j]) {
			b := &run.Log.Accesses[p]
			if run.Place(b) == own[0] && b.Thread == a.Thread && b.Handler == a.Handler {
				if !f.foreign(run, indices, others, p, i) {
					pair = []int{p, i}
				}
				break
			}
			if slices.Contains(others, run.Place(b)) && (b.Thread != a.Thread || b.Handler != a.Handler) {
				break
			}
		}
	}
	if pair == nil {
		return
	}
	c.PassingRun, c.Passing = n, pair
	names := f.runs.PlaceText(own[0]) + " and " + f.runs.PlaceText(own[1])
	if own[0] == own[1] {
		names = "the two accesses of " + f.runs.PlaceText(own[0])
	}
	switch other := f.beside(run, indices, others, pair); {
	case other < 0:
		c.Instead = fmt.Sprintf("in passing runs %s does not come near: %s are not interleaved", f.runs.PlaceText(others[0]), names)
	case other < pair[0]:
		c.Instead = fmt.Sprintf("in passing runs %s are not interleaved: %s comes before both", names, f.runs.PlaceText(others[0]))
		c.Passing = []int{other, pair[0], pair[1]}
	default:
		c.Instead = fmt.Sprintf("in passing runs %s are not interleaved: %s comes behind both", names, f.runs.PlaceText(others[0]))
		c.Passing = []int{pair[0], pair[1], other}
	}
}

// sides are the places of the context that is interrupted, and of the other.
func (c *Candidate) sides() (own, others []delta.Place) {
	p := c.key.places
	if c.key.shape == shapePair {
		return []delta.Place{p[0], p[3]}, []delta.Place{p[1], p[2]}
	}
	return []delta.Place{p[0], p[2]}, []delta.Place{p[1]}
}

// foreign reports whether another context is at the others' places between.
func (f *finder) foreign(run *delta.Run, indices []int, others []delta.Place, first, last int) bool {
	mine := &run.Log.Accesses[first]
	for _, i := range indices {
		a := &run.Log.Accesses[i]
		if i > first && i < last && (a.Thread != mine.Thread || a.Handler != mine.Handler) && slices.Contains(others, run.Place(a)) {
			return true
		}
	}
	return false
}

// beside is the access of another context at the others' places that is closest
// to a pair; -1: none.
func (f *finder) beside(run *delta.Run, indices []int, others []delta.Place, pair []int) int {
	best, distance := -1, 0
	mine := &run.Log.Accesses[pair[0]]
	for _, i := range indices {
		a := &run.Log.Accesses[i]
		if a.Thread == mine.Thread && a.Handler == mine.Handler || !slices.Contains(others, run.Place(a)) {
			continue
		}
		if d := max(pair[0]-i, i-pair[1]); best < 0 || d < distance {
			best, distance = i, d
		}
	}
	return best
}

// without is for candidates whose code passing runs do not come to in any way.
func (f *finder) without(c *Candidate) {
	if c.Pattern == evidence.PatternLockOrder {
		c.Instead = "in passing runs the threads are never there at the same time"
		return
	}
	absent := slices.DeleteFunc(slices.Clone(f.steps(c)), func(p delta.Place) bool { return f.visited(c, p) })
	if len(absent) > 0 {
		c.Instead = "passing runs do not come to " + f.runs.PlaceText(absent[0])
		return
	}
	c.Instead = "in passing runs these accesses are in another order"
	if c.PassingRuns > 0 {
		c.Instead = fmt.Sprintf("%d of %s that passed %s it too", c.PassingRuns, runs(c.PassingOf), has(c.PassingRuns))
	}
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func (f *finder) visited(c *Candidate, p delta.Place) bool {
	return slices.ContainsFunc(f.d.Passing, func(profile *delta.Profile) bool {
		for _, v := range []int32{c.key.variable, c.key.second} {
			for _, writes := range []bool{false, true} {
				if _, ok := profile.Span(v, p, writes); ok {
					return true
				}
			}
		}
		return false
	})
}
