package provenance

import "diagnose/flow"

// pointerMemo keeps results of following pointers back. Accesses in a loop have pointers of which each came from the one of the
// round before, so that their ways have nearly all definitions in common.
type pointerMemo struct {
	made   map[pointerStep]madeAt
	handed map[handedStep]*Declared
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

// remember keeps a result for the definitions on a way.
func remember[K comparable, V any](m *map[K]V, way []K, found V) {
	if *m == nil {
		*m = map[K]V{}
	}
	for _, k := range way[:min(len(way), max(0, mostKept-len(*m)))] {
		(*m)[k] = found
	}
}
