package patterns

import (
	"fmt"
	"slices"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/wording"
)

// mostShown bounds the accesses of a candidate's code that are examined in a
// passing run: later ones repeat.
const mostShown = 512

// findPassing finds what passing runs do at the code of each candidate.
func (f *finder) findPassing() {
	list := f.result.Candidates
	for n, run := range f.runs.Passing {
		open := map[where][]*Candidate{}
		for i := range list {
			if c := &list[i]; c.PassingRun < 0 && c.Pattern != evidence.PatternLockOrder && !f.passingHas(n, c.key) {
				c.openIn(open)
			}
		}
		if len(open) > 0 {
			f.lookForPassing(n, run, open)
		}
	}
	for i := range list {
		if len(f.passing) > 0 && list[i].Instead == (Instead{}) {
			f.without(&list[i])
		}
	}
}

// where is a place of the code that accesses a variable.
type where struct {
	variable int32
	place    delta.Place
}

// openIn adds a candidate to those whose accesses are searched for.
func (c *Candidate) openIn(open map[where][]*Candidate) {
	for _, place := range c.steps() {
		for _, variable := range []int32{c.key.variable, c.key.other()} {
			w := where{variable, place}
			if !slices.Contains(open[w], c) {
				open[w] = append(open[w], c)
			}
		}
	}
}

// visit holds the accesses of a passing run at the places of a candidate.
type visit struct {
	run     *delta.Run
	number  int // of the run
	indices []int
}

// lookForPassing collects the accesses at the places of the candidates, and derives from
// them what the run does.
func (f *finder) lookForPassing(n int, run *delta.Run, open map[where][]*Candidate) {
	visits := map[*Candidate]*visit{}
	for i := range run.Log.Accesses {
		a := &run.Log.Accesses[i]
		for _, c := range open[where{run.Variable[a.Variable], run.Place(a)}] {
			v := visits[c]
			if v == nil {
				v = &visit{run: run, number: n}
				visits[c] = v
			}
			if len(v.indices) < mostShown {
				v.indices = append(v.indices, i)
			}
		}
	}
	for c, v := range visits {
		if c.key.shape <= shapeWW {
			f.insteadTwo(c, v)
		} else {
			f.insteadThree(c, v)
		}
	}
}

// steps returns the places of a pattern in time order, as in the failing run.
// The first and the last are one context's, if there are more than two.
func (c *Candidate) steps() []delta.Place {
	return c.key.places[:c.key.shape.accesses()]
}

func (f *finder) insteadTwo(c *Candidate, v *visit) {
	first, last := v.accessesAt(c.key.places[0], c.writes(0)), v.accessesAt(c.key.places[1], c.writes(1))
	switch {
	case len(first) == 0 && len(last) == 0:
		return
	case len(first) == 0 || len(last) == 0:
		there, missing := first, c.key.places[1]
		if len(first) == 0 {
			there, missing = last, c.key.places[0]
		}
		c.PassingRun, c.Passing = v.number, there[:1]
		c.Instead = f.absence(c, missing, v.number)
		return
	}
	c.PassingRun = v.number
	if pair := nearest(last, first); pair != nil {
		c.Passing = pair
		c.Instead = InPassing("%s comes before %s", f.runs.PlaceText(c.key.places[1]), f.runs.PlaceText(c.key.places[0]))
		return
	}
	c.Passing = nearest(first, last)
	c.Instead = InPassing("another access comes between the two")
}

// writes reports whether the pattern's access of that number is a write.
func (c *Candidate) writes(n int) bool { return c.Pattern[n] == 'W' }

// accessesAt returns the accesses at a place.
func (v *visit) accessesAt(place delta.Place, writes bool) []int {
	var list []int
	for _, i := range v.indices {
		a := &v.run.Log.Accesses[i]
		if v.run.Place(a) == place && (writes && a.Kind != evidence.CodeRead || !writes && a.Kind != evidence.CodeWrite) {
			list = append(list, i)
		}
	}
	return list
}

// nearest returns the closest pair of an access of the first list and the next
// later one of the second; nil if there is none.
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

func (f *finder) insteadThree(c *Candidate, v *visit) {
	own, others := c.sides()
	pair := v.alone(own, others)
	if pair == nil {
		return
	}
	c.PassingRun, c.Passing = v.number, pair
	names := f.runs.PlaceText(own[0]) + " and " + f.runs.PlaceText(own[1])
	if own[0] == own[1] {
		names = "the two accesses of " + f.runs.PlaceText(own[0])
	}
	switch other := v.beside(others, pair); {
	case other < 0:
		c.Instead = InPassing("%s does not come near: %s are not interleaved", f.runs.PlaceText(others[0]), names)
	case other < pair[0]:
		c.Instead = InPassing("%s are not interleaved: %s comes before both", names, f.runs.PlaceText(others[0]))
		c.Passing = []int{other, pair[0], pair[1]}
	default:
		c.Instead = InPassing("%s are not interleaved: %s comes after both", names, f.runs.PlaceText(others[0]))
		c.Passing = []int{pair[0], pair[1], other}
	}
}

// sides returns the places of the interrupted context, and those of the other.
func (c *Candidate) sides() (own, others []delta.Place) {
	p := c.key.places
	if c.key.shape == shapePair {
		return []delta.Place{p[0], p[3]}, []delta.Place{p[1], p[2]}
	}
	return []delta.Place{p[0], p[2]}, []delta.Place{p[1]}
}

// alone returns the first two successive accesses of one context at its own places with no
// access of another context at the others' places in between; nil if there are none.
func (v *visit) alone(own, others []delta.Place) []int {
	for j, i := range v.indices {
		last := &v.run.Log.Accesses[i]
		if v.run.Place(last) != own[1] {
			continue
		}
		for _, p := range slices.Backward(v.indices[:j]) {
			a := &v.run.Log.Accesses[p]
			same := sameContext(a, last)
			if same && v.run.Place(a) == own[0] {
				return []int{p, i}
			}
			if !same && slices.Contains(others, v.run.Place(a)) {
				break
			}
		}
	}
	return nil
}

func sameContext(a, b *evidence.Access) bool { return a.Thread == b.Thread && a.Handler == b.Handler }

// beside returns the access of another context at the others' places that is
// closest to a pair; -1: none.
func (v *visit) beside(others []delta.Place, pair []int) int {
	best, distance := -1, 0
	mine := &v.run.Log.Accesses[pair[0]]
	for _, i := range v.indices {
		a := &v.run.Log.Accesses[i]
		if sameContext(a, mine) || !slices.Contains(others, v.run.Place(a)) {
			continue
		}
		if d := max(pair[0]-i, i-pair[1]); best < 0 || d < distance {
			best, distance = i, d
		}
	}
	return best
}

// without is for candidates to which no passing run has comparable accesses.
func (f *finder) without(c *Candidate) {
	if c.Pattern == evidence.PatternLockOrder {
		c.Instead = InPassing("the threads are never there at the same time")
		return
	}
	absent := slices.DeleteFunc(slices.Clone(c.steps()), func(p delta.Place) bool { return f.visited(c, p) })
	if len(absent) > 0 {
		c.Instead = f.absence(c, absent[0], -1)
		return
	}
	c.Instead = InPassing("these accesses are in another order")
	if c.PassingOf == 0 {
		c.Instead = f.absence(c, c.steps()[0], -1)
		return
	}
	if c.PassingRuns > 0 {
		c.Instead = Instead{Text: fmt.Sprintf("%d of %s that passed %s it too", c.PassingRuns, wording.Count(c.PassingOf, "run"), has(c.PassingRuns))}
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
		for _, v := range []int32{c.key.variable, c.key.other()} {
			for _, writes := range []bool{false, true} {
				if _, ok := profile.Span(v, p, writes); ok {
					return true
				}
			}
		}
		return false
	})
}

// Instead is what passing runs do in place of a candidate.
type Instead struct {
	// Text is a phrase about Passing runs, or a whole sentence.
	Text    string
	Passing bool
}

// InPassing is what passing runs do, in a phrase.
func InPassing(format string, args ...any) Instead {
	return Instead{Text: evidence.Say(fmt.Sprintf(format, args...)), Passing: true}
}

// Of returns the sentence for the case that some of the passing runs differ.
func (i Instead) Of(not, runs int) string {
	switch {
	case !i.Passing:
		return i.Text
	case not > 0:
		return fmt.Sprintf("in %d of %d passing runs %s", runs-not, runs, i.Text)
	}
	return "in passing runs " + i.Text
}
