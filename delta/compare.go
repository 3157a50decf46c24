package delta

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"

	"diagnose/evidence"
)

// Kind is the kind of a difference.
type Kind string

// The kinds of difference.
const (
	OnlyFailing Kind = "only in failing runs" // the variable is accessed there
	OnlyPassing Kind = "only in passing runs"
	Values      Kind = "values"
	// Order: reads see another place's write, or the initial value.
	Order Kind = "order"
)

// Difference is a property of a variable and a place that failing runs have and
// no passing run has, or the reverse.
type Difference struct {
	Kind     Kind
	Variable string
	Place    Place
	Writes   bool
	Failing  Side
	Passing  Side
	// Text is one sentence without a final stop.
	Text string
}

// Side describes the failing or the passing runs.
type Side struct {
	// Runs of Of have it.
	Runs, Of int
	// Run indexes Runs.Failing or Runs.Passing, and Accesses are of that run:
	// the first access that shows the difference, preceded by the write that it
	// reads from if that is known. None: it does not happen.
	Run      int
	Accesses []int
	// Values are those that the other side does not have, or all; they are few.
	Values []uint64
	// Sources are the places whose values are read on this side only.
	Sources []Source
}

// Source is a place that wrote a value that is read.
type Source struct {
	Place Place
	// Initial: no write was seen before.
	Initial bool
}

// Delta is the set of differences.
type Delta struct {
	Runs        *Runs
	Differences []Difference
	// Failing and Passing are the profiles of the runs, in their order.
	Failing, Passing []*Profile
	// Limits name the parts that were not compared.
	Limits []evidence.Limit
}

// Compare compares each variable of failing runs with the same in passing ones.
// Without a passing run nothing differs.
func Compare(runs *Runs) *Delta {
	profiles := profilesOf(slices.Concat(runs.Failing, runs.Passing))
	n := len(runs.Failing)
	d := &Delta{Runs: runs, Failing: profiles[:n:n], Passing: profiles[n:]}
	if len(runs.Passing) == 0 {
		return d
	}
	c := &comparison{runs: runs, failing: d.Failing, passing: d.Passing}
	for _, key := range c.keys() {
		d.Differences = append(d.Differences, c.compare(key)...)
	}
	if c.crowded > 0 {
		d.Limits = evidence.AddLimit(d.Limits, evidence.Limit{Code: evidence.LimitCrowdedPlaces, Count: uint64(c.crowded), Of: fewSources})
	}
	for i := range d.Differences {
		d.Differences[i].Text = runs.text(&d.Differences[i])
	}
	slices.SortStableFunc(d.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Text, b.Text))
	})
	return d
}

// rank is how well the difference separates failing runs from passing ones: the
// fraction of its side that has it.
func rank(d Difference) float64 {
	if d.Kind == OnlyPassing {
		return float64(d.Passing.Runs) / float64(d.Passing.Of)
	}
	return float64(d.Failing.Runs) / float64(d.Failing.Of)
}

// profilesOf profiles the runs, on all processors.
func profilesOf(runs []*Run) []*Profile {
	profiles := make([]*Profile, len(runs))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, run := range runs {
		wait.Go(func() {
			slots <- struct{}{}
			profiles[i] = profileOf(run)
			<-slots
		})
	}
	wait.Wait()
	return profiles
}

type comparison struct {
	runs             *Runs
	failing, passing []*Profile
	crowded          int // places with too many sources
}

func (c *comparison) keys() []use {
	set := map[use]bool{}
	for _, p := range slices.Concat(c.failing, c.passing) {
		for key := range p.uses {
			set[key] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b use) int {
		return cmp.Or(cmp.Compare(a.variable, b.variable), cmp.Compare(a.place, b.place), cmp.Compare(bit(a.writes), bit(b.writes)))
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// presence counts the runs that have the use; Run and Accesses are the first's.
func presence(list []*Profile, key use) Side {
	s := Side{Of: len(list)}
	for i, p := range list {
		u := p.uses[key]
		if u == nil {
			continue
		}
		if s.Runs == 0 {
			s.Run, s.Accesses = i, []int{int(u.first)}
		}
		s.Runs++
	}
	return s
}

func (c *comparison) compare(key use) []Difference {
	d := Difference{Variable: c.runs.Variables[key.variable], Place: key.place, Writes: key.writes}
	d.Failing, d.Passing = presence(c.failing, key), presence(c.passing, key)
	switch {
	case d.Passing.Runs == 0:
		d.Kind = OnlyFailing
		return []Difference{d}
	case d.Failing.Runs == 0:
		d.Kind = OnlyPassing
		return []Difference{d}
	}
	var list []Difference
	if v, ok := c.values(key, d); ok {
		list = append(list, v)
	}
	if key.writes {
		return list
	}
	if o, ok := c.sources(key, d); ok {
		list = append(list, o)
	}
	return list
}

// values compares the values of a place, if there are few of them.
func (c *comparison) values(key use, d Difference) (Difference, bool) {
	passing := map[uint64]bool{}
	d.Kind = Values
	for _, p := range c.passing {
		if u := p.uses[key]; u != nil {
			if u.manyValues {
				return d, false
			}
			for _, v := range u.values {
				if !passing[v.value] && len(passing) < fewValues {
					d.Passing.Values = append(d.Passing.Values, v.value)
				}
				passing[v.value] = true
			}
		}
	}
	d.Failing = Side{Of: len(c.failing)}
	for i, p := range c.failing {
		u := p.uses[key]
		if u == nil || u.manyValues {
			continue
		}
		found := false
		for _, v := range u.values {
			if passing[v.value] {
				continue
			}
			if d.Failing.Accesses == nil {
				d.Failing.Run, d.Failing.Accesses = i, []int{int(v.first)}
			}
			found = true
			if !slices.Contains(d.Failing.Values, v.value) && len(d.Failing.Values) < fewValues {
				d.Failing.Values = append(d.Failing.Values, v.value)
			}
		}
		d.Failing.Runs += bit(found)
	}
	return d, d.Failing.Runs > 0
}

// sources compares whose values a place reads.
func (c *comparison) sources(key use, d Difference) (Difference, bool) {
	many := func(p *Profile) bool { return p.uses[key] != nil && p.uses[key].manySources }
	if slices.ContainsFunc(c.failing, many) || slices.ContainsFunc(c.passing, many) {
		c.crowded++
		return d, false
	}
	d.Kind = Order
	d.Failing = onlyThere(c.failing, c.passing, key)
	d.Passing = onlyThere(c.passing, c.failing, key)
	return d, d.Failing.Runs > 0
}

// onlyThere returns the sources that only one side has.
func onlyThere(here, there []*Profile, key use) Side {
	known := map[Place]bool{}
	for _, p := range there {
		if u := p.uses[key]; u != nil {
			for _, s := range u.sources {
				known[s.place] = true
			}
		}
	}
	side := Side{Of: len(here)}
	for i, p := range here {
		u := p.uses[key]
		if u == nil {
			continue
		}
		found := false
		for _, s := range u.sources {
			if known[s.place] {
				continue
			}
			if side.Accesses == nil {
				side.Run, side.Accesses = i, []int{int(s.first)}
				if s.writer >= 0 {
					side.Accesses = []int{int(s.writer), int(s.first)}
				}
			}
			found = true
			from := Source{Place: s.place}
			if s.place == noPlace {
				from = Source{Initial: true}
			}
			if !slices.Contains(side.Sources, from) {
				side.Sources = append(side.Sources, from)
			}
		}
		side.Runs += bit(found)
	}
	return side
}
