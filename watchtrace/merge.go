package watchtrace

import (
	"cmp"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
)

// merger merges the hits of the passes into one log.
type merger struct {
	plan     *Plan
	names    *namer
	log      *evidence.AccessLog
	backends []string // those of the passes, each once
	contexts map[contextKey]int32
	byKey    map[string]int32
	sets     map[heldKey]int32
}

// heldKey determines a lock set.
type heldKey struct {
	thread        uint32
	ordinal, held uint64
}

func newMerger(p *Plan, names *namer) *merger {
	m := &merger{plan: p, names: names, contexts: map[contextKey]int32{}, byKey: map[string]int32{}, sets: map[heldKey]int32{}}
	outcome := p.rec.Manifest.Outcome.Kind
	m.log = &evidence.AccessLog{
		Recording: p.rec.Dir, Failed: outcome == record.OutcomeSignal || outcome == record.OutcomeExit,
		Variables: p.Variables, LockSets: [][]evidence.Lock{nil}, Threads: names.threads(p.history), Order: p.history.order,
	}
	m.log.Limits = append(m.log.Limits, p.limits...)
	if p.history.cut != nil {
		m.limit(evidence.Limit{Code: evidence.LimitRecordingCut, Reason: wording.Bare(p.history.cut)})
	}
	return m
}

func (m *merger) limit(l evidence.Limit) { m.log.Limits = evidence.AddLimit(m.log.Limits, l) }

// addPass adds the hits of a pass.
func (m *merger) addPass(pass int, s *seen) error {
	m.log.Passes++
	m.log.Cut = m.log.Cut || s.result == nil || s.err != nil
	if s.result == nil {
		return nil
	}
	x := &m.plan.Passes[pass]
	if b := string(s.result.Backend); !slices.Contains(m.backends, b) {
		m.backends = append(m.backends, b)
		m.log.Backend = strings.Join(m.backends, ", ")
	}
	m.log.Lost += s.result.Lost
	if s.err != nil {
		m.limit(evidence.Limit{Code: evidence.LimitPassEnded, Pass: pass + 1, Reason: s.err.Error()})
	}
	if x.locks {
		m.acquired(x, s)
		return nil
	}
	for i := range s.hits {
		h := &s.hits[i]
		v := x.Variables[h.Watch]
		m.log.Variables[v].Hits++
		m.log.Accesses = append(m.log.Accesses, evidence.Access{
			Position: h.Position, Ordinal: h.Ordinal, PC: h.PC, Hit: h.Number, Old: h.Old, New: h.New,
			Variable: int32(v), Context: m.context(h, s), Locks: m.lockSet(h), Thread: h.Thread,
			Offset: uint32(x.Offsets[h.Watch]), Size: uint8(x.Watches[h.Watch].Size), Kind: h.Kind, By: h.By,
			Handler: m.plan.history.handler(h.Thread, h.Ordinal),
		})
	}
	m.log.Hits += uint64(len(s.hits))
	if x.Known {
		m.known(x, s)
	}
	if s.result.Lost > 0 {
		for _, v := range x.Variables {
			m.log.Variables[v].Lost = s.result.Lost
		}
	}
	return nil
}

func (m *merger) context(h *replay.Hit, s *seen) int32 {
	key := keyOf(h)
	if i, found := m.contexts[key]; found {
		return i
	}
	c, named := s.contexts[key]
	if !named {
		c = m.names.context(key)
	}
	i, found := m.byKey[c.Key]
	if !found {
		i = int32(len(m.log.Contexts))
		m.log.Contexts = append(m.log.Contexts, c)
		m.byKey[c.Key] = i
	}
	m.contexts[key] = i
	return i
}

func (m *merger) lockSet(h *replay.Hit) int32 {
	if h.Held == 0 {
		return 0
	}
	key := heldKey{h.Thread, h.Ordinal, h.Held}
	if i, found := m.sets[key]; found {
		return i
	}
	held := m.plan.history.held(h)
	var set []evidence.Lock
	for i := range m.plan.history.locks {
		if l := &m.plan.history.locks[i]; held&(1<<i) != 0 {
			set = append(set, evidence.Lock{Address: l.addr, Name: m.names.lock(l.addr), Shared: l.kind == lockReader, Taken: m.plan.history.since(h, i)})
		}
	}
	i := int32(0)
	if len(set) > 0 {
		i = int32(len(m.log.LockSets))
		m.log.LockSets = append(m.log.LockSets, set)
	}
	m.sets[key] = i
	return i
}

// finish sorts the log. Several threads may have accesses at one position: the
// result of a call is copied before its thread gives up the right to run, and
// the code after an event may run as late as just before the thread's next one.
// The accesses of one thread between two events are in the order of the passes.
func (m *merger) finish() *evidence.AccessLog {
	h := m.plan.history
	slices.SortStableFunc(m.log.Acquisitions, func(a, b evidence.Acquisition) int { return cmp.Compare(a.Position, b.Position) })
	slices.SortStableFunc(m.log.Accesses, func(a, b evidence.Access) int {
		if c := cmp.Compare(a.Position, b.Position); c != 0 || a.Thread == b.Thread {
			if c == 0 && a.Ordinal != b.Ordinal {
				return cmp.Compare(a.Ordinal, b.Ordinal)
			}
			return c
		}
		if x, y := ownEvent(h, &a), ownEvent(h, &b); x != y {
			if x {
				return -1
			}
			return 1
		}
		if c := cmp.Compare(h.next(a.Thread, a.Ordinal), h.next(b.Thread, b.Ordinal)); c != 0 {
			return c
		}
		return cmp.Compare(a.Thread, b.Thread)
	})
	return m.log
}

// ownEvent reports whether an access is of the call that was the last event of
// all threads.
func ownEvent(h *history, a *evidence.Access) bool {
	t := h.threads[a.Thread]
	return a.By == evidence.ByCall && t != nil && a.Ordinal > 0 && a.Ordinal <= uint64(len(t.positions)) && t.positions[a.Ordinal-1] == a.Position
}
