package patterns

import (
	"cmp"
	"slices"

	"diagnose/delta"
	"diagnose/evidence"
)

// shape is a PatternKind in one byte.
type shape uint8

const (
	shapeRW shape = iota
	shapeWR
	shapeWW
	shapeRWR
	shapeRWW
	shapeWWR
	shapeWRW
	shapePair
)

var kinds = [...]evidence.PatternKind{
	evidence.PatternRW, evidence.PatternWR, evidence.PatternWW,
	evidence.PatternRWR, evidence.PatternRWW, evidence.PatternWWR, evidence.PatternWRW,
	evidence.PatternPair,
}

// accesses is the number of accesses of a pattern of the shape.
func (s shape) accesses() int {
	switch {
	case s <= shapeWW:
		return 2
	case s == shapePair:
		return 4
	}
	return 3
}

// key is equal for the same pattern in several runs: the variables, and in time
// the places of the accesses; missing ones are 0.
type key struct {
	variable, second int32
	places           [4]delta.Place
	shape            shape
}

// other is the second variable of a pair, and the only one of other patterns.
func (k *key) other() int32 {
	if k.shape == shapePair {
		return k.second
	}
	return k.variable
}

// less is an arbitrary total order.
func (k *key) less(other *key) bool {
	return cmp.Or(cmp.Compare(k.variable, other.variable), cmp.Compare(k.second, other.second),
		slices.Compare(k.places[:], other.places[:]), cmp.Compare(k.shape, other.shape)) < 0
}
