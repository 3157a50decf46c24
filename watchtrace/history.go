package watchtrace

import (
	"errors"
	"maps"
	"slices"
	"sort"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// history holds the log's context of accesses: the order between threads, the
// locks that they take, and the signal handlers that they are in.
type history struct {
	// places: signals arrived between two events. A replay may need a debug
	// register to find these places.
	places  bool
	threads map[uint32]*threadHistory
	locks   []lock
	order   []evidence.OrderEdge
	// calls are those that may have changed traced memory without an access.
	calls []evidence.Call
	// others: what else than the recorded calls may have changed memory unseen.
	others bool
	events uint64
	// cut says where the order of the log ends too early; nil: it is complete.
	cut error
}

// threadHistory is the history of one thread.
type threadHistory struct {
	// positions has for each of its events, by ordinal from 1, the number of
	// events of all threads up to and including it.
	positions []uint64
	// handlers are the begins and ends of handlers.
	handlers []handlerChange
	// taken are the locks that it took, in order; waits the events with which
	// it returned from a condition wait, holding the mutex again.
	taken []takenLock
	waits []uint64
	start evidence.Addr
	tid   int
}

type handlerChange struct {
	ordinal uint64
	signal  uint8 // of the handler that runs from then on; 0: none
}

type takenLock struct {
	ordinal, position uint64
	lock              int
}

// lock is a lock variable.
type lock struct {
	addr evidence.Addr
	kind lockKind
	// takers are the threads that took it.
	takers map[uint32]bool
	taken  uint64 // times
	word   replay.LockWord
}

type lockKind uint8

const (
	lockMutex lockKind = iota
	lockWriter
	lockReader
	lockSpin
)

// lockSizes are of pthread_mutex_t, pthread_rwlock_t (twice), pthread_spinlock_t.
var lockSizes = [...]evidence.Addr{lockMutex: 40, lockWriter: 56, lockReader: 56, lockSpin: 4}

// Offsets of the owner in glibc and the recording library: __owner of a
// pthread_mutex_t, __cur_writer of a pthread_rwlock_t.
const (
	mutexOwner  = 8
	rwlockOwner = 24
)

// readHistory makes one pass over the log of a recording in which the targets are traced.
func readHistory(rec *record.Recording, targets []Target) (*history, error) {
	r := historyReader{
		targets: targets,
		history: &history{threads: map[uint32]*threadHistory{}},
		locks:   map[lockKey]int{}, last: map[evidence.Addr]taker{}, created: map[uint32]taker{}, nested: map[uint32][]uint8{},
	}
	for e, err := range rec.Log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			r.history.cut = err
			break
		}
		if err != nil {
			return nil, err
		}
		r.event(e)
	}
	for _, l := range rec.Manifest.Limits {
		r.history.others = r.history.others || unseenWriters[l.Kind]
	}
	r.history.chooseLocks()
	return r.history, nil
}

type historyReader struct {
	targets []Target
	history *history
	locks   map[lockKey]int
	last    map[evidence.Addr]taker // of each lock
	created map[uint32]taker        // by which thread and when
	nested  map[uint32][]uint8      // the handlers that each thread is in
}

type lockKey struct {
	addr evidence.Addr
	kind lockKind
}

type taker struct {
	thread  uint32
	ordinal uint64
}

func (r *historyReader) event(e *eventlog.Event) {
	h := r.history
	h.events++
	t := h.threads[e.Thread]
	if t == nil {
		t = &threadHistory{}
		h.threads[e.Thread] = t
	}
	t.positions = append(t.positions, h.events)
	now := taker{e.Thread, e.Ordinal}
	switch e.Kind {
	case eventlog.KindExit:
		r.kernel()
	case eventlog.KindCreate:
		r.kernel()
		if e.Result == 0 {
			r.created[uint32(e.Object)] = now
			created := &threadHistory{}
			if len(e.Args) > 2 {
				created.start = evidence.Addr(e.Args[2])
			}
			h.threads[uint32(e.Object)] = created
		}
	case eventlog.KindStart:
		if len(e.Args) > 1 {
			t.tid = int(e.Args[1])
		}
		if by, found := r.created[e.Thread]; found {
			r.edge(by, now, false)
		}
	case eventlog.KindJoin:
		if joined := h.threads[uint32(e.Object)]; joined != nil && e.Result == 0 {
			r.edge(taker{uint32(e.Object), uint64(len(joined.positions))}, now, false)
		}
	case eventlog.KindMutex, eventlog.KindRWLock, eventlog.KindSpin:
		r.take(e, t, now)
	case eventlog.KindSyscall:
		r.call(e)
	case eventlog.KindLimit:
		r.history.others = r.history.others || unseenWriters[eventlog.LimitKind(e.Object).String()]
	case eventlog.KindCond:
		t.waits = append(t.waits, e.Ordinal)
	case eventlog.KindSignal:
		r.kernel()
		if len(e.Args) > 0 && eventlog.SignalPlace(e.Args[0]) == eventlog.PlaceAsync {
			h.places = true
		}
		r.handler(t, e, append(r.nested[e.Thread], uint8(e.Object)))
	case eventlog.KindSignalEnd:
		if n := len(r.nested[e.Thread]); n > 0 {
			r.handler(t, e, r.nested[e.Thread][:n-1])
		}
	}
}

func (r *historyReader) handler(t *threadHistory, e *eventlog.Event, nested []uint8) {
	r.nested[e.Thread] = nested
	change := handlerChange{ordinal: e.Ordinal}
	if n := len(nested); n > 0 {
		change.signal = nested[n-1]
	}
	t.handlers = append(t.handlers, change)
}

func (r *historyReader) edge(from, to taker, lock bool) {
	r.history.order = append(r.history.order, evidence.OrderEdge{
		From: from.thread, FromOrdinal: from.ordinal, To: to.thread, ToOrdinal: to.ordinal, Lock: lock})
}

// take handles an event of a lock that was taken. Releases are no events, so
// the order covers only what the previous owner did before it took the lock.
func (r *historyReader) take(e *eventlog.Event, t *threadHistory, now taker) {
	if e.Result != 0 || e.Flags&eventlog.FlagInterrupted != 0 || len(e.Args) == 0 {
		return
	}
	addr := evidence.Addr(e.Object)
	kind := lockMutex
	switch {
	case e.Kind == eventlog.KindSpin:
		kind = lockSpin
	case e.Kind == eventlog.KindRWLock && eventlog.Sync(e.Args[0]).Reads():
		kind = lockReader
	case e.Kind == eventlog.KindRWLock:
		kind = lockWriter
	}
	key := lockKey{addr, kind}
	i, found := r.locks[key]
	if !found {
		i = len(r.history.locks)
		r.locks[key] = i
		r.history.locks = append(r.history.locks, lock{addr: addr, kind: kind, takers: map[uint32]bool{}})
	}
	l := &r.history.locks[i]
	l.takers[e.Thread] = true
	l.taken += 1 + e.Skipped
	t.taken = append(t.taken, takenLock{e.Ordinal, r.history.events, i})
	if before, found := r.last[addr]; found && before.thread != e.Thread {
		r.edge(before, now, true)
	}
	r.last[addr] = now
}

// chooseLocks keeps the locks that a replay reads: first those taken by several
// threads, because others protect nothing, then those taken most often.
func (h *history) chooseLocks() {
	several := map[evidence.Addr]map[uint32]bool{}
	for _, l := range h.locks {
		if several[l.addr] == nil {
			several[l.addr] = map[uint32]bool{}
		}
		maps.Copy(several[l.addr], l.takers)
	}
	order := make([]int, len(h.locks))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		x, y := &h.locks[order[a]], &h.locks[order[b]]
		if m, n := len(several[x.addr]) > 1, len(several[y.addr]) > 1; m != n {
			return m
		}
		return x.taken > y.taken
	})
	order = order[:min(len(order), replay.MostLocks)]
	renumbered := map[int]int{}
	var kept []lock
	for _, i := range order {
		l := h.locks[i]
		switch l.kind {
		case lockMutex:
			l.word = replay.LockWord{Addr: l.addr + mutexOwner, Owner: true}
		case lockWriter:
			l.word = replay.LockWord{Addr: l.addr + rwlockOwner, Owner: true}
		default:
			l.word = replay.LockWord{Addr: l.addr}
		}
		renumbered[i] = len(kept)
		kept = append(kept, l)
	}
	for _, t := range h.threads {
		t.taken = slices.DeleteFunc(t.taken, func(x takenLock) bool { _, found := renumbered[x.lock]; return !found })
		for i := range t.taken {
			t.taken[i].lock = renumbered[t.taken[i].lock]
		}
	}
	h.locks = kept
}

func (h *history) words() []replay.LockWord {
	var list []replay.LockWord
	for i := range h.locks {
		list = append(list, h.locks[i].word)
	}
	return list
}

// held returns the set of locks that a hit's thread holds, one bit per index. A lock
// without an owner field counts as held by the thread that took it last (spin
// locks), or by every thread that took it (readers).
func (h *history) held(hit *replay.Hit) uint64 {
	var set uint64
	for i := range h.locks {
		if hit.Held&(1<<i) == 0 {
			continue
		}
		if h.locks[i].word.Owner || h.took(hit, i) {
			set |= 1 << i
		}
	}
	return set
}

// took reports whether the hit's thread was the last to take a lock, or for a
// reader's lock, whether it took the lock at all.
func (h *history) took(hit *replay.Hit, lock int) bool {
	mine := h.threads[hit.Thread].lastTaken(lock, hit.Position)
	if mine == nil || h.locks[lock].kind == lockReader {
		return mine != nil
	}
	for thread := range h.locks[lock].takers {
		if other := h.threads[thread].lastTaken(lock, hit.Position); other != nil && other.position > mine.position {
			return false
		}
	}
	return true
}

// lastTaken returns when a thread last took a lock, up to a position; nil:
// never.
func (t *threadHistory) lastTaken(lock int, position uint64) *takenLock {
	if t == nil {
		return nil
	}
	n := sort.Search(len(t.taken), func(i int) bool { return t.taken[i].position > position })
	for n--; n >= 0; n-- {
		if t.taken[n].lock == lock {
			return &t.taken[n]
		}
	}
	return nil
}

// since returns the event with which a thread acquired a lock that it holds.
func (h *history) since(hit *replay.Hit, lock int) uint64 {
	t := h.threads[hit.Thread]
	x := t.lastTaken(lock, hit.Position)
	if x == nil {
		return 0
	}
	n := sort.Search(len(t.waits), func(i int) bool { return t.waits[i] > hit.Ordinal })
	if n > 0 && h.locks[lock].kind == lockMutex {
		return max(x.ordinal, t.waits[n-1])
	}
	return x.ordinal
}

// handler returns the signal in whose handler a thread is after an event; 0:
// none.
func (h *history) handler(thread uint32, ordinal uint64) uint8 {
	t := h.threads[thread]
	if t == nil {
		return 0
	}
	n := sort.Search(len(t.handlers), func(i int) bool { return t.handlers[i].ordinal > ordinal })
	if n == 0 {
		return 0
	}
	return t.handlers[n-1].signal
}

// next returns the position of a thread's event after the given one; the
// highest value if there is none.
func (h *history) next(thread uint32, ordinal uint64) uint64 {
	if t := h.threads[thread]; t != nil && ordinal < uint64(len(t.positions)) {
		return t.positions[ordinal]
	}
	return ^uint64(0)
}
