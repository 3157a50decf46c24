package explore

import (
	"hash/fnv"

	"diagnose/replay/record"
)

// memory is what searches of a recording tried: this search, and earlier ones that did not
// reach its end.
type memory struct {
	list []record.TriedPlan
	// earlier are the plans of earlier searches, by their hash.
	earlier map[uint64]record.TriedPlan
}

func (p plan) hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.key()))
	return h.Sum64()
}

// recall loads what an earlier search stored.
func (m *memory) recall(f *record.Found) {
	m.earlier = map[uint64]record.TriedPlan{}
	m.list = append(f.Tried[:len(f.Tried):len(f.Tried)], m.list...)
	for _, p := range f.Tried {
		m.earlier[p.Hash] = p
	}
}

// note adds an attempt. If an attempt was ended because a thread computed for too long, perhaps
// not endlessly, its progress depends on the machine, and another search may try it again.
func (m *memory) note(o *outcome) {
	if o == nil || o.stuck && !o.endless || o.same {
		return
	}
	hash := o.plan.hash()
	if _, known := m.earlier[hash]; known {
		return
	}
	m.list = append(m.list, record.TriedPlan{Hash: hash, Events: o.events, Thread: o.thread, Ordinal: o.ordinal})
}

// tried returns the plans to store: the last ones.
func (m *memory) tried() record.TriedPlans {
	return m.list[max(0, len(m.list)-record.MostTried):]
}

// useless reports whether an earlier search tried a plan in vain: it got no further than from.
// If neutral is set, a plan that got as far in the same thread counts as useful.
func (m *memory) useless(p plan, from *outcome, neutral bool) bool {
	x, known := m.earlier[p.hash()]
	switch {
	case !known || x.Events > from.events:
		return false
	case x.Events == from.events && x.Thread == from.thread && x.Ordinal == from.ordinal:
		return !neutral
	}
	return true
}
