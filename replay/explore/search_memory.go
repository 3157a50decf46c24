package explore

import (
	"hash/fnv"

	"diagnose/replay/record"
)

// memory is what searches of a recording tried, this one and those before it that
// did not come to its end.
type memory struct {
	list []record.TriedPlan
	// earlier are those of searches before, by their hash.
	earlier map[uint64]record.TriedPlan
}

func (p plan) hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.key()))
	return h.Sum64()
}

// recall takes what an earlier search wrote down.
func (m *memory) recall(f *record.Found) {
	m.earlier = map[uint64]record.TriedPlan{}
	m.list = append(f.Tried[:len(f.Tried):len(f.Tried)], m.list...)
	for _, p := range f.Tried {
		m.earlier[p.Hash] = p
	}
}

// note is told of an attempt. How far one came that was ended because a thread
// computed for so long, and perhaps not for good, depends on the machine: another search
// may try it again.
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

// tried is what is written down: the last of them.
func (m *memory) tried() record.TriedPlans {
	return m.list[max(0, len(m.list)-record.MostTried):]
}

// useless reports whether an earlier search tried a plan in vain: it came no further
// than from, nor, if such are looked into, as far in the same thread.
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
