package provenance

import (
	"iter"

	"diagnose/evidence"
	"diagnose/flow"
)

// pointerMemo keeps results of following pointers back. Accesses in a loop have pointers of which each came from the one of the
// round before, so that their ways have nearly all definitions in common.
type pointerMemo struct {
	made    map[pointerStep]madeAt
	handed  map[handedStep]*Declared
	vectors map[pointerStep]evidence.Addr
}

// pointerStep is a definition that a pointer came through.
type pointerStep struct {
	at   int
	part flow.Location
}

func stepOf(d flow.Definition) pointerStep { return pointerStep{d.At, d.Part} }

// handedStep is one for the code of a function that uses the pointer.
type handedStep struct {
	pointerStep
	user string
}

// madeAt is where a function made an address in its frame; ok is false if it is none.
type madeAt struct {
	d  flow.Definition
	ok bool
}

// mostKept bounds the definitions of which something is kept.
const mostKept = 1 << 20

// recall goes along a way to the first definition of which found knows the result, or of which m has one, and keeps that for those before.
func recall[K comparable, V any](m *map[K]V, definitions iter.Seq[flow.Definition], key func(flow.Definition) K, found func(flow.Definition) (V, bool)) (result V) {
	var way []K
	for d := range definitions {
		k := key(d)
		known, is := (*m)[k]
		if !is {
			way = append(way, k)
			known, is = found(d)
		}
		if is {
			result = known
			break
		}
	}
	if *m == nil {
		*m = map[K]V{}
	}
	for _, k := range way[:min(len(way), max(0, mostKept-len(*m)))] {
		(*m)[k] = result
	}
	return result
}
