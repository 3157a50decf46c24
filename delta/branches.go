package delta

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// Branch is a branch of the code, in a function that was called from one place.
type Branch struct {
	PC evidence.Addr
	// Caller is the address to which the function returns; 0: any.
	Caller evidence.Addr
}

// anywhere is the branch in a function that was called from any place.
func (b Branch) anywhere() Branch { return Branch{PC: b.PC} }

// Way is a way on from a branch: to the instruction Next.
type Way struct {
	Branch
	Next evidence.Addr
}

// Branches are the ways that one run took.
type Branches struct {
	taken   map[Way]bool
	reached map[Branch]bool
	// values are those that were compared at a branch, few of them.
	values map[Branch][][]uint64
}

// NewBranches is a run that has reached no branch.
func NewBranches() *Branches {
	return &Branches{map[Way]bool{}, map[Branch]bool{}, map[Branch][][]uint64{}}
}

// Add notes that the run took a way. values are those that the branch compared, nil if they are not known.
func (b *Branches) Add(w Way, values []uint64) {
	for _, at := range []Branch{w.Branch, w.anywhere()} {
		b.taken[Way{at, w.Next}], b.reached[at] = true, true
		list := b.values[at]
		same := func(known []uint64) bool { return slices.Equal(known, values) }
		if values != nil && len(list) < fewValues && !slices.ContainsFunc(list, same) {
			b.values[at] = append(list, values)
		}
	}
}

// Took reports whether the run took a way.
func (b *Branches) Took(w Way) bool { return b.taken[w] }

// Separation is how well a way that a failing run took tells failing runs from passing ones.
type Separation struct {
	// Index is that of the way in what Separate was given.
	Index int
	// Way is that way; without its Caller if no passing run took it there from any caller.
	Way Way
	// Failing of FailingOf runs took it, and Passing of PassingOf; Reached of these reached the branch.
	Failing, FailingOf, Passing, PassingOf, Reached int
	// Values are what passing runs compared there, few of them.
	Values [][]uint64
}

// Score is the mean of the share of failing runs that took the way and the share of passing runs that did not, in [0, 1]
// (the accuracy of a predicate: AURORA, USENIX Security 2020, section 4.2).
func (s *Separation) Score() float64 {
	failing, passing := float64(s.Failing)/float64(s.FailingOf), float64(s.Passing)/float64(s.PassingOf)
	return (failing + 1 - passing) / 2
}

// Separate ranks ways that a failing run took, the best first. A way counts if some passing run reached its branch and took another way
// there, and if it is rather a failing run that takes it. Of equal ones the order is that in which they were given, and of the same way
// the first counts. There is at least one run on each side.
func Separate(ways []Way, failing, passing []*Branches) []Separation {
	var list []Separation
	seen := map[Way]bool{}
	for i, w := range ways {
		best := separationOf(Way{w.anywhere(), w.Next}, failing, passing)
		if w.Caller != 0 {
			if here := separationOf(w, failing, passing); here.Reached > 0 && here.Score() > best.Score() {
				best = here
			}
		}
		best.Index = i
		if best.Reached > best.Passing && best.Score() > 0.5 && !seen[best.Way] {
			seen[best.Way] = true
			list = append(list, best)
		}
	}
	slices.SortStableFunc(list, func(a, b Separation) int { return cmp.Compare(b.Score(), a.Score()) })
	return list
}

func separationOf(w Way, failing, passing []*Branches) Separation {
	s := Separation{Way: w, FailingOf: len(failing), PassingOf: len(passing)}
	for _, b := range failing {
		s.Failing += bit(b.taken[w])
	}
	for _, b := range passing {
		s.Passing += bit(b.taken[w])
		s.Reached += bit(b.reached[w.Branch])
		for _, v := range b.values[w.Branch] {
			same := func(known []uint64) bool { return slices.Equal(known, v) }
			if len(s.Values) < fewValues && !slices.ContainsFunc(s.Values, same) {
				s.Values = append(s.Values, v)
			}
		}
	}
	return s
}
