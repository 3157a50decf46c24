package watchtrace

import (
	"cmp"
	"context"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// waiting is a thread that waited for a lock when the recording ended.
type waiting struct {
	thread  uint32
	ordinal uint64
	lock    evidence.Addr
	shared  bool
	held    uint64 // bit per lock of the history
	context evidence.Context
}

// mostOrdered bounds the locks whose acquisitions are traced (Options.LockOrder).
const mostOrdered = 16

// orderPasses returns passes over the owners of locks that several threads
// take.
func (h *history) orderPasses(most int) []Pass {
	var words []word
	for i := range h.locks {
		l := &h.locks[i]
		if l.kind != lockMutex && l.kind != lockWriter || len(l.takers) < 2 || len(words) == mostOrdered {
			continue
		}
		words = append(words, word{watch: replay.Watch{Addr: l.word.Addr, Size: 4, Writes: true}, variable: i})
	}
	var passes []Pass
	for part := range slices.Chunk(words, most) {
		x := passOf(part)
		x.locks = true
		passes = append(passes, x)
	}
	return passes
}

// atEnd finds the threads that wait for locks. The recording's core does not
// show them, because an unfinished wait is no event.
func (p *Plan) atEnd(s *replay.Stopped) ([]waiting, error) {
	if len(p.history.locks) == 0 {
		return nil, nil
	}
	var list []waiting
	process, err := s.Process()
	if err != nil {
		return nil, err
	}
	for index := range p.history.threads {
		r, err := image.Struct[agent.RawRThread](s, evidence.Addr(agent.RThreadAddress(index)))
		if err != nil || r.State == agent.REnded || r.State == agent.RNone {
			continue
		}
		kind := eventlog.Kind(r.WaitsFor)
		if kind != eventlog.KindMutex && kind != eventlog.KindRWLock && kind != eventlog.KindSpin {
			continue
		}
		w := waiting{thread: index, ordinal: r.Ordinal, lock: evidence.Addr(r.WaitsObject)}
		for i, word := range p.history.words() {
			owner, err := image.Uint32(s, word.Addr)
			if err == nil && owner != 0 && (!word.Owner || owner == r.TID) {
				w.held |= 1 << i
			}
		}
		w.context = standingAt(process, int(index))
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b waiting) int { return cmp.Compare(a.thread, b.thread) })
	return list, nil
}

// standingAt returns the innermost place of the program's own code on a
// thread's stack.
func standingAt(p *image.Process, number int) evidence.Context {
	const most = 64
	for i := range p.Threads {
		if p.Threads[i].Ref.Number != number {
			continue
		}
		for _, f := range unwind.New(p).Walk(&p.Threads[i], most).Frames {
			c := contextOf(p, contextKey{pc: f.PC()})
			if f.Lookup == image.ReturnAddress {
				c = contextOf(p, contextKey{caller: f.PC()})
			}
			if !image.LibraryCode(&c.Site) && c.Site.Function != "" {
				return c
			}
		}
	}
	return evidence.Context{}
}

// replayToEnd replays the recording to examine its end, if no pass has done so.
func (t *tracer) replayToEnd(ctx context.Context) error {
	if t.looked || len(t.plan.history.locks) == 0 {
		return nil
	}
	_, err := replay.Run(ctx, t.plan.rec, replay.PlainRequest{Common: replay.Common{Image: t.plan.opts.Image, AtEnd: func(s *replay.Stopped) (err error) {
		t.waiting, err = t.plan.atEnd(s)
		return err
	}}})
	return err
}

// acquired adds the acquisitions that a pass over owners saw.
func (m *merger) acquired(x *Pass, s *seen) {
	h := m.plan.history
	var list []evidence.Acquisition
	for i := range s.hits {
		hit := &s.hits[i]
		lock := x.Variables[hit.Watch]
		if hit.New == 0 || hit.New == hit.Old || hit.By == evidence.ByHeap {
			continue // released
		}
		others := *hit
		others.Held &^= 1 << lock
		set := m.lockSet(&others)
		if set == 0 {
			continue
		}
		list = append(list, evidence.Acquisition{
			Position: hit.Position, Turn: hit.Turn, Ordinal: hit.Ordinal, Thread: hit.Thread, Context: m.context(hit, s), Held: set,
			Lock: evidence.Lock{Address: h.locks[lock].addr, Name: m.names.lock(h.locks[lock].addr), Taken: hit.Ordinal},
		})
	}
	m.acquisitions = append(m.acquisitions, list)
}

// waits adds the acquisitions that were never completed.
func (m *merger) waits(list []waiting) {
	for _, w := range list {
		end := replay.Hit{Thread: w.thread, Ordinal: w.ordinal, Position: ^uint64(0), Held: w.held}
		i, found := m.byKey[w.context.Key]
		if !found {
			i = int32(len(m.log.Contexts))
			m.log.Contexts = append(m.log.Contexts, w.context)
			m.byKey[w.context.Key] = i
		}
		m.log.Acquisitions = append(m.log.Acquisitions, evidence.Acquisition{
			Position: m.plan.history.events, Ordinal: w.ordinal, Thread: w.thread, Context: i, Held: m.lockSet(&end),
			Lock: evidence.Lock{Address: w.lock, Name: m.names.lock(w.lock), Shared: w.shared}, Waiting: true,
		})
	}
}
