package delta

import "diagnose/evidence"

// use is a variable accessed at a place, in one direction: an instruction that
// reads and writes is two uses.
type use struct {
	variable int32
	writes   bool
	place    Place
}

// fewValues is up to how many values of a place are compared: one with more is a
// counter's or an address's, which differ between runs for no reason.
const fewValues = 8

// Profile is what one run does to its variables.
type Profile struct {
	uses map[use]*usage
}

// Span is where a run's accesses of one variable at one place are: the indices
// of the first and the last, and how many there are.
type Span struct {
	First, Last int
	Count       uint64
}

// Span of the reads, or the writes, of a variable at a place; none: false.
func (p *Profile) Span(variable int32, place Place, writes bool) (Span, bool) {
	u := p.uses[use{variable, writes, place}]
	if u == nil {
		return Span{}, false
	}
	return Span{int(u.first), int(u.last), u.count}, true
}

// usage is what one run does at a place.
type usage struct {
	count       uint64
	first, last int32
	values      []value
	many        bool
	// sources are the places that wrote what is read here; noPlace is what was
	// there before all writes.
	sources  []source
	bySource map[Place]int // once there are many
}

type value struct {
	value uint64
	first int32
	count uint64
}

type source struct {
	place         Place
	first, writer int32 // the first such read, and the write that it reads from
	count         uint64
}

// noPlace wrote what a variable had at first.
const noPlace Place = -1

// profileOf goes once over a run's accesses, in their order.
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
	u.count++
	u.last = index
	return u
}

func (u *usage) addValue(v uint64, index int32) {
	for i := range u.values {
		if u.values[i].value == v {
			u.values[i].count++
			return
		}
	}
	if len(u.values) == fewValues {
		u.many = true
		return
	}
	u.values = append(u.values, value{v, index, 1})
}

// manySources is from how many sources on they are looked up in a table.
const manySources = 8

// addSource keeps as many sources as there are places that write the variable.
func (u *usage) addSource(from Place, index, writer int32) {
	if u.bySource != nil {
		if i, ok := u.bySource[from]; ok {
			u.sources[i].count++
			return
		}
		u.bySource[from] = len(u.sources)
	} else {
		for i := range u.sources {
			if u.sources[i].place == from {
				u.sources[i].count++
				return
			}
		}
	}
	u.sources = append(u.sources, source{from, index, writer, 1})
	if u.bySource == nil && len(u.sources) > manySources {
		u.bySource = map[Place]int{}
		for i := range u.sources {
			u.bySource[u.sources[i].place] = i
		}
	}
}
