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
	// accesses and acquisitions are those of each pass.
	accesses     [][]evidence.Access
	acquisitions [][]evidence.Acquisition
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
		Variables: p.Variables, LockSets: [][]evidence.Lock{nil}, Threads: names.threads(p.history), Order: p.history.order, Calls: p.history.calls, Others: p.history.others,
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
	accesses := make([]evidence.Access, 0, len(s.hits))
	for i := range s.hits {
		h := &s.hits[i]
		v := x.Variables[h.Watch]
		m.log.Variables[v].Hits++
		accesses = append(accesses, evidence.Access{
			Position: h.Position, Turn: h.Turn, Ordinal: h.Ordinal, PC: h.PC, Hit: h.Number, Old: h.Old, New: h.New,
			Variable: int32(v), Context: m.context(h, s), Locks: m.lockSet(h), Thread: h.Thread,
			Offset: uint32(x.Offsets[h.Watch]), Size: uint8(x.Watches[h.Watch].Size), Kind: h.Kind, By: h.By,
			Handler: m.plan.history.handler(h.Thread, h.Ordinal),
		})
	}
	m.accesses = append(m.accesses, accesses)
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

// finish merges the passes and checks the log.
func (m *merger) finish() *evidence.AccessLog {
	h := m.plan.history
	m.log.Accesses = merged(m.accesses, func(a, b *evidence.Access) bool { return h.compare(accessInstant(a), accessInstant(b)) < 0 })
	m.log.Acquisitions = append(merged(m.acquisitions, func(a, b *evidence.Acquisition) bool {
		return h.compare(acquisitionInstant(a), acquisitionInstant(b)) < 0
	}), m.log.Acquisitions...)
	if m.log.Contradiction = m.log.Contradicts(); m.log.Contradiction != nil {
		m.limit(m.log.Contradiction.Limit())
	}
	return m.log
}

// merged merges the lists of the passes. Each is in the order in which it happened.
func merged[T any](passes [][]T, before func(a, b *T) bool) []T {
	total := 0
	for _, p := range passes {
		total += len(p)
	}
	list := make([]T, 0, total)
	for len(list) < total {
		first, second := firstTwo(passes, before)
		p := passes[first]
		n := 1
		for n < len(p) && (second < 0 || before(&p[n], &passes[second][0]) || first < second && !before(&passes[second][0], &p[n])) {
			n++
		}
		list = append(list, p[:n]...)
		passes[first] = p[n:]
	}
	return list
}

// firstTwo returns the pass whose next element comes first, of equal ones the lower, and the one
// that is next; -1: there is none.
func firstTwo[T any](passes [][]T, before func(a, b *T) bool) (first, second int) {
	first, second = -1, -1
	for i, p := range passes {
		switch {
		case len(p) == 0:
		case first < 0 || before(&p[0], &passes[first][0]):
			first, second = i, first
		case second < 0 || before(&p[0], &passes[second][0]):
			second = i
		}
	}
	return first, second
}

// instant is where an access is in the order of a replay.
type instant struct {
	turn, position, ordinal uint64
	thread                  uint32
	call                    bool
}

func accessInstant(a *evidence.Access) instant {
	return instant{a.Turn, a.Position, a.Ordinal, a.Thread, a.By == evidence.ByCall}
}

func acquisitionInstant(a *evidence.Acquisition) instant {
	return instant{turn: a.Turn, position: a.Position, ordinal: a.Ordinal, thread: a.Thread}
}

// compare compares accesses of two passes. One thread runs in each turn. Where turns are not
// known, several threads may have accesses at one position: the result of a call is copied before
// its thread gives up the right to run, and the code after an event may run as late as just before
// the thread's next one.
func (h *history) compare(a, b instant) int {
	if a.turn != 0 && b.turn != 0 && a.turn != b.turn {
		return cmp.Compare(a.turn, b.turn)
	}
	if c := cmp.Compare(a.position, b.position); c != 0 {
		return c
	}
	if a.thread == b.thread {
		return cmp.Compare(a.ordinal, b.ordinal)
	}
	if x, y := h.ownEvent(a), h.ownEvent(b); x != y {
		if x {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(h.next(a.thread, a.ordinal), h.next(b.thread, b.ordinal)), cmp.Compare(a.thread, b.thread))
}

// ownEvent reports whether an access is of the call that was the last event of
// all threads.
func (h *history) ownEvent(a instant) bool {
	t := h.threads[a.thread]
	return a.call && t != nil && a.ordinal > 0 && a.ordinal <= uint64(len(t.positions)) && t.positions[a.ordinal-1] == a.position
}
