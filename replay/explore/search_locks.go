package explore

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// does is the effect of a function of the recording library on a lock.
type does uint8

const (
	nothing does = iota
	takes
	gives
	signals // other threads may run after it
)

// function is a synchronisation function of the recording library, and the kind of its event if
// it has one.
type function struct {
	does does
	kind eventlog.Kind
}

var functions = map[string]function{
	"pthread_mutex_lock": {takes, eventlog.KindMutex}, "pthread_mutex_unlock": {gives, eventlog.KindMutex},
	"pthread_spin_lock": {takes, eventlog.KindSpin}, "pthread_spin_unlock": {gives, eventlog.KindSpin},
	"mtx_lock": {takes, eventlog.KindMutex}, "mtx_unlock": {gives, eventlog.KindMutex}, "pthread_mutex_trylock": {signals, eventlog.KindMutex},
	"pthread_rwlock_unlock": {signals, eventlog.KindRWLock}, "pthread_rwlock_rdlock": {signals, eventlog.KindRWLock},
	"pthread_rwlock_wrlock": {signals, eventlog.KindRWLock}, "pthread_cond_signal": {signals, eventlog.KindCond},
	"pthread_cond_broadcast": {signals, eventlog.KindCond}, "cnd_signal": {signals, eventlog.KindCond},
	"cnd_broadcast": {signals, eventlog.KindCond}, "sem_post": {signals, eventlog.KindSem},
}

// functions returns them by their addresses; none if the recording's end is not known.
func (s *search) functions() map[evidence.Addr]function {
	if s.library != nil {
		return s.library
	}
	s.library = map[evidence.Addr]function{}
	path, err := s.rec.Core()
	if err != nil {
		return s.library
	}
	core, err := image.OpenCore(path, s.opts.Image)
	if err != nil {
		return s.library
	}
	defer core.Close()
	for name, f := range functions {
		if symbol, found := core.SymbolNamed(name); found {
			s.library[symbol.Addr] = f
		}
	}
	return s.library
}

// lockset is the locks of a thread, in no order. It is not changed once it was passed on.
type lockset []uint64

// sharesLock reports whether two threads hold the same lock.
func (l lockset) sharesLock(other lockset) bool {
	return slices.ContainsFunc(l, func(lock uint64) bool { return slices.Contains(other, lock) })
}

// holder is the known locks of a thread: those that it took in the window.
type holder struct {
	ordinal uint64
	locks   lockset
}

type holders struct {
	order *order
	of    map[uint32]*holder
}

// holderAt returns the state of the thread of an access or a call, after the events that it has
// done.
func (h *holders) holderAt(x *replay.Stepped) *holder {
	t := h.of[x.Thread]
	if t == nil {
		t = &holder{ordinal: x.Ordinal - 1}
		h.of[x.Thread] = t
	}
	for t.ordinal < x.Ordinal {
		t.ordinal++
		if at := h.order.position(x.Thread, t.ordinal); at != 0 && h.order.eventAt(at).taken {
			t.take(h.order.eventAt(at).object)
		}
	}
	return t
}

func (h *holder) take(lock uint64) {
	if !slices.Contains(h.locks, lock) {
		h.locks = append(slices.Clone(h.locks), lock)
	}
}

func (h *holder) call(what does, lock uint64) {
	switch what {
	case takes:
		h.take(lock)
	case gives:
		h.locks = slices.DeleteFunc(slices.Clone(h.locks), func(x uint64) bool { return x == lock })
	}
}
