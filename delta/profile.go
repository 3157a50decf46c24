package delta

import (
	"slices"

	"diagnose/evidence"
)

// use is a variable accessed at a place, in one direction: an instruction that
// reads and writes is two uses.
type use struct {
	variable int32
	writes   bool
	place    Place
}

// fewValues bounds the values of a place that are compared: a place with more
// has a counter or an address, which differ between runs for no reason.
const fewValues = 8

// fewSources bounds the writing places that are compared for one reading place:
// any two places of a run may be such a pair.
const fewSources = 256

// Profile is what one run does to its variables.
type Profile struct {
	uses map[use]*usage
}

// Span is the range of a run's accesses to one variable at one place: the
// indices of the first and the last.
type Span struct{ First, Last int }

// Span returns the span of the reads, or the writes, of a variable at a place;
// false if there are none.
func (p *Profile) Span(variable int32, place Place, writes bool) (Span, bool) {
	u := p.uses[use{variable, writes, place}]
	if u == nil {
		return Span{}, false
	}
	return Span{int(u.first), int(u.last)}, true
}

// Variables returns the numbers of the variables that are accessed at a place.
func (p *Profile) Variables(place Place) []int32 {
	var list []int32
	for u := range p.uses {
		if u.place == place && !slices.Contains(list, u.variable) {
			list = append(list, u.variable)
		}
	}
	slices.Sort(list)
	return list
}

// usage is what one run does at a place.
type usage struct {
	first, last int32
	values      []value
	manyValues  bool
	// sources are the places that wrote the values read here; noPlace is the
	// initial value.
	sources     []source
	manySources bool
}

type value struct {
	value uint64
	first int32
}

type source struct {
	place         Place
	first, writer int32 // the first such read, and the write that it reads from
}

// noPlace stands for the writer of a variable's initial value.
const noPlace Place = -1

// profileOf makes one pass over a run's accesses, in their order.
func profileOf(run *Run) *Profile {
	p := &Profile{uses: map[use]*usage{}}
	cells := NewCells(run.Log)
	var writers []int32 // by cell: the last write + 1
	for i := range run.Log.Accesses {
		a := &run.Log.Accesses[i]
		cell := cells.Of(a)
		if int(cell) == len(writers) {
			writers = append(writers, 0)
		}
		place, variable := run.Place(a), run.Variable[a.Variable]
		if a.Kind != evidence.CodeWrite {
			u := p.use(use{variable, false, place}, int32(i))
			u.addValue(a.Old, int32(i))
			from := noPlace
			if w := writers[cell]; w != 0 {
				from = run.Place(&run.Log.Accesses[w-1])
			}
			u.addSource(from, int32(i), writers[cell]-1)
		}
		if a.Kind == evidence.CodeWrite || a.Kind == evidence.CodeReadWrite {
			p.use(use{variable, true, place}, int32(i)).addValue(a.New, int32(i))
			writers[cell] = int32(i) + 1
		}
	}
	return p
}

func (p *Profile) use(key use, index int32) *usage {
	u := p.uses[key]
	if u == nil {
		u = &usage{first: index}
		p.uses[key] = u
	}
	u.last = index
	return u
}

func (u *usage) addValue(v uint64, index int32) {
	switch {
	case u.manyValues || slices.ContainsFunc(u.values, func(known value) bool { return known.value == v }):
	case len(u.values) == fewValues:
		u.manyValues = true
	default:
		u.values = append(u.values, value{v, index})
	}
}

func (u *usage) addSource(from Place, index, writer int32) {
	switch {
	case u.manySources || slices.ContainsFunc(u.sources, func(known source) bool { return known.place == from }):
	case len(u.sources) == fewSources:
		u.manySources = true
	default:
		u.sources = append(u.sources, source{from, index, writer})
	}
}
