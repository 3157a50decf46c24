package explore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/corefile"
	"diagnose/replay/record/eventlog"
)

const (
	// mostWatched is how many words of a window are watched.
	mostWatched = 24
	// mostAccesses is how many accesses are traced in a replay; each is a trap.
	mostAccesses = 100_000
	// mostLooks is how many times memory is compared for changes.
	mostLooks = 16
	// mostTouched is how many bytes of memory are compared.
	mostTouched = 256 << 20
	// crowded is the number of changed words from which a page counts as data rather than as
	// state that threads share.
	crowded = 128
	// mostArrivals is how often a thread may reach an instruction before it is preempted there:
	// each arrival is a trap.
	mostArrivals = 5000
	page         = 4096
	wordSize     = 8
)

// changes are the words of memory that change in a window.
type changes struct {
	library string
	before  map[evidence.Addr][]byte // earlier contents of pages
	pages   map[evidence.Addr]map[evidence.Addr]bool
	seen    bool
}

var errTooMuch = errors.New("explore: too much memory is in use to see what changes")

// compareStopped compares memory with its earlier contents.
func (c *changes) compareStopped(at *replay.Stopped) error {
	touched, err := corefile.Touched(at.PID(), c.library)
	if err != nil {
		return err
	}
	size := uint64(0)
	for _, r := range touched {
		if size += uint64(r.End - r.Start); size > mostTouched {
			return errTooMuch
		}
	}
	for _, r := range touched {
		now := make([]byte, r.End-r.Start)
		if _, err := at.ReadMemory(r.Start, now); err != nil {
			return err
		}
		for offset := evidence.Addr(0); offset < r.End-r.Start; offset += page {
			c.compare(r.Start+offset, now[offset:offset+page])
		}
	}
	c.seen = true
	return nil
}

func (c *changes) compare(at evidence.Addr, now []byte) {
	before, known := c.before[at]
	if known && bytes.Equal(before, now) {
		return
	}
	if c.before[at] = now; !c.seen {
		return
	}
	words := c.pages[at]
	if words == nil {
		words = map[evidence.Addr]bool{}
		c.pages[at] = words
	}
	for i := 0; i < page && len(words) < crowded; i += wordSize {
		was := uint64(0)
		if known {
			was = binary.LittleEndian.Uint64(before[i:])
		}
		if binary.LittleEndian.Uint64(now[i:]) != was {
			words[at+evidence.Addr(i)] = true
		}
	}
}

// words returns the changed words by the part of memory, those of pages with few changes first:
// words through which threads communicate are among words that do not change. Pages with many
// changes are left out.
func (c *changes) words(left func(evidence.Addr) bool) (list []evidence.Addr, all bool) {
	all = true
	for _, words := range c.pages {
		if len(words) >= crowded {
			all = false
			continue
		}
		for w := range words {
			if !left(w) {
				list = append(list, w)
			}
		}
	}
	slices.SortFunc(list, func(a, b evidence.Addr) int {
		return cmp.Or(cmp.Compare(corefile.PartOf(a), corefile.PartOf(b)),
			cmp.Compare(len(c.pages[a&^(page-1)]), len(c.pages[b&^(page-1)])), cmp.Compare(a, b))
	})
	return list, all
}

// changed returns the words to watch.
func (s *search) changed(ctx context.Context, o *outcome, w *window) ([]evidence.Addr, error) {
	c := &changes{library: string(s.rec.Manifest.Agent.Path), before: map[evidence.Addr][]byte{}, pages: map[evidence.Addr]map[evidence.Addr]bool{}}
	var steps []step
	for _, st := range slices.Concat(w.own, w.others) {
		if len(steps) < mostLooks && s.order.holdable(st) {
			steps = append(steps, st)
		}
	}
	looking := s.looking(o.plan)
	looking.AtEnd = c.compareStopped
	for {
		looking.Hooks = nil
		for _, st := range steps {
			looking.Hooks = append(looking.Hooks, replay.Hook{At: evidence.Moment{Thread: st.thread, Ordinal: st.ordinal}, Do: c.compareStopped})
		}
		_, err := s.replayTraced(ctx, replay.PlainRequest{Common: looking})
		// A call with several events does not return between them.
		var missed *replay.MomentError
		if !errors.As(err, &missed) {
			list, all := c.words(s.ofLock)
			s.unwatched = s.unwatched || !all || len(list) > mostWatched
			return list[:min(len(list), mostWatched)], err
		}
		c.seen = false
		left := slices.DeleteFunc(steps, func(st step) bool { return st.thread == missed.Moment.Thread && st.ordinal == missed.Moment.Ordinal })
		if len(left) == len(steps) {
			return nil, nil
		}
		steps = left
	}
}

// ofLock reports whether a word belongs to a synchronisation object. The assumed size is that
// of the largest (pthread_rwlock_t).
func (s *search) ofLock(word evidence.Addr) bool {
	const size = 56
	if s.locks == nil {
		s.locks = map[evidence.Addr]bool{}
		for i := range s.order.events {
			if e := &s.order.events[i]; e.kind >= eventlog.KindMutex && e.kind <= eventlog.KindGuard {
				for at := evidence.Addr(e.object) &^ (wordSize - 1); at < evidence.Addr(e.object)+size; at += wordSize {
					s.locks[at] = true
				}
			}
		}
	}
	return s.locks[word]
}

// shared returns the orders of accesses to words that change in the window. Watchpoints trace
// those at full speed.
func (s *search) shared(ctx context.Context, o *outcome, w *window) ([]candidate, error) {
	x, err := s.remember(fmt.Sprint("words ", o.plan.key(), w.from(), w.to()), func() (traced, error) {
		s.looked = fmt.Sprintf("the words that change between the events %d and %d", w.from(), w.to())
		t, err := s.watch(ctx, o, w)
		if err != nil {
			return traced{}, err
		}
		return traced{accesses: s.reversals(o, t, nil, mostFine)}, nil
	})
	return x.accesses, err
}

// watch traces the words that change.
func (s *search) watch(ctx context.Context, o *outcome, w *window) (*trace, error) {
	words, err := s.changed(ctx, o, w)
	if err != nil {
		return nil, err
	}
	owners, locks := s.ownersIn(w)
	seen := &watched{plan: o.plan, windows: w.threads(), locks: locks, of: map[evidence.Addr]*wordAccesses{}}
	if err := s.watchWords(ctx, o, seen, owners, words); err != nil {
		return nil, err
	}
	return seen.trace(), nil
}

// watchWords collects the accesses to words, four in a replay, or three if debug registers have to find
// places of preemptions, too. Of words that are accessed too often it
// collects none: they take all the time, and are seldom what threads wait for.
func (s *search) watchWords(ctx context.Context, o *outcome, seen *watched, owners []replay.LockWord, words []evidence.Addr) error {
	registers := 4
	if slices.ContainsFunc(o.plan.list, func(x eventlog.Preemption) bool { return x.Class == eventlog.PointPC }) {
		registers--
	}
	for part := range slices.Chunk(words, registers) {
		for len(part) > 0 {
			hot, err := s.watchPart(ctx, o, seen, owners, part)
			if err != nil {
				return err
			}
			if len(hot) == 0 {
				break
			}
			s.unwatched = true
			part = slices.DeleteFunc(slices.Clone(part), func(word evidence.Addr) bool { return slices.Contains(hot, word) })
		}
	}
	return nil
}

// errHot ends a replay in which words are accessed too often.
var errHot = errors.New("explore: a word is accessed too often to be watched")

// watchPart collects the accesses to words in one replay. If there are more than mostAccesses, it collects
// none, and returns the words that have most of them.
func (s *search) watchPart(ctx context.Context, o *outcome, seen *watched, owners []replay.LockWord, part []evidence.Addr) (hot []evidence.Addr, err error) {
	var watches []replay.Watch
	for _, word := range part {
		watches = append(watches, replay.Watch{Addr: word, Size: wordSize})
	}
	total, counts := 0, make([]int, len(part))
	onHit := func(h *replay.Hit) error {
		counts[h.Watch]++
		if total++; total > mostAccesses {
			return errHot
		}
		seen.hit(part[h.Watch], h)
		return nil
	}
	untraced := s.untraced
	if _, err := s.replayTraced(ctx, replay.WatchRequest{Common: s.looking(o.plan),
		Watching: replay.Watching{Watches: watches, Locks: owners, OnHit: onHit}}); err != nil || total <= mostAccesses {
		return nil, err
	}
	s.untraced = untraced
	for i, word := range part {
		delete(seen.of, word)
		if counts[i] > mostAccesses/(2*len(part)) {
			hot = append(hot, word)
		}
	}
	return hot, nil
}

// ownersIn returns the owner words of mutexes of the window that have one, and the mutexes.
func (s *search) ownersIn(w *window) (words []replay.LockWord, locks []uint64) {
	const owner = 8 // pthread_mutex_t's __owner
	for at := min(w.to(), s.order.total()); at >= w.from() && at > 0; at-- {
		e := s.order.eventAt(at)
		if e.kind == eventlog.KindMutex && !slices.Contains(locks, e.object) && len(locks) < replay.MostLocks {
			locks = append(locks, e.object)
			words = append(words, replay.LockWord{Addr: evidence.Addr(e.object) + owner, Owner: true})
		}
	}
	return words, locks
}

// watched is the accesses that watchpoints reported.
type watched struct {
	plan    plan
	windows map[uint32]replay.StepWindow
	locks   []uint64 // of the bits of Hit.Held
	of      map[evidence.Addr]*wordAccesses
}

// wordAccesses are some of the accesses to a word.
type wordAccesses struct {
	kept   []seenAccess
	counts map[arrivals]uint64
	last   map[arrivals]int // index in kept
}

type arrivals struct {
	thread  uint32
	ordinal uint64
	pc      evidence.Addr
	behind  int
}

type seenAccess struct {
	replay.Stepped
	held lockset
}

// hit adds an access. Of those that an instruction makes in a step it keeps the first ones,
// then each that is twice as far as the previous one, and the last.
func (x *watched) hit(word evidence.Addr, h *replay.Hit) {
	w, known := x.windows[h.Thread]
	// A thread cannot be preempted at an access of a library or the kernel.
	if !known || h.Ordinal < w.From || h.Ordinal > w.To || h.PC == 0 || h.Caller != 0 || h.By == evidence.ByCall {
		return
	}
	a := x.of[word]
	if a == nil {
		a = &wordAccesses{counts: map[arrivals]uint64{}, last: map[arrivals]int{}}
		x.of[word] = a
	}
	key := arrivals{h.Thread, h.Ordinal, h.PC, x.preemptedBefore(h)}
	a.counts[key]++
	n := a.counts[key]
	kind := h.Kind.Kind()
	if kind == "" {
		kind = evidence.ReadWrite
	}
	s := seenAccess{Stepped: replay.Stepped{Thread: h.Thread, Ordinal: h.Ordinal, Position: h.Position, PC: h.PC, Count: n, Behind: key.behind,
		Addr: word, Size: wordSize, Kind: kind}}
	for b := h.Held; b != 0; b &= b - 1 {
		s.held = append(s.held, x.locks[bits.TrailingZeros64(b)])
	}
	if n > mostArrivals {
		s.Count = 0
	}
	if at, again := a.last[key]; again && (n-1)&(n-2) != 0 {
		a.kept = slices.Delete(a.kept, at, at+1)
		for k, i := range a.last {
			if i > at {
				a.last[k] = i - 1
			}
		}
	}
	a.last[key] = len(a.kept)
	a.kept = append(a.kept, s)
}

// preemptedBefore is how many preemptions at instructions the step has before the access.
func (x *watched) preemptedBefore(h *replay.Hit) int {
	n := 0
	for _, p := range x.plan.list {
		if p.Thread == h.Thread && p.Ordinal == h.Ordinal && p.Class == eventlog.PointPC && p.Until <= h.Position {
			n++
		}
	}
	return n
}

// trace returns the accesses in the order of their positions; those of one word in their own
// order.
func (x *watched) trace() *trace {
	var list []seenAccess
	for _, a := range x.of {
		list = append(list, a.kept...)
	}
	slices.SortStableFunc(list, func(a, b seenAccess) int { return cmp.Compare(a.Position, b.Position) })
	t := &trace{}
	for _, a := range list {
		t.accesses = append(t.accesses, a.Stepped)
		t.locks = append(t.locks, a.held)
	}
	return t
}
