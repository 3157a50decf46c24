package explore

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
)

// does is what a function of the recording library does with a lock.
type does uint8

const (
	nothing does = iota
	takes
	gives
	signals // others may go on behind it
)

// function is one of the recording library's that synchronises, and the kind of event
// that it is where it is one.
type function struct {
	does does
	kind record.Kind
}

var functions = map[string]function{
	"pthread_mutex_lock": {takes, record.KindMutex}, "pthread_mutex_unlock": {gives, record.KindMutex},
	"pthread_spin_lock": {takes, record.KindSpin}, "pthread_spin_unlock": {gives, record.KindSpin},
	"mtx_lock": {takes, record.KindMutex}, "mtx_unlock": {gives, record.KindMutex}, "pthread_mutex_trylock": {signals, record.KindMutex},
	"pthread_rwlock_unlock": {signals, record.KindRWLock}, "pthread_rwlock_rdlock": {signals, record.KindRWLock},
	"pthread_rwlock_wrlock": {signals, record.KindRWLock}, "pthread_cond_signal": {signals, record.KindCond},
	"pthread_cond_broadcast": {signals, record.KindCond}, "cnd_signal": {signals, record.KindCond},
	"cnd_broadcast": {signals, record.KindCond}, "sem_post": {signals, record.KindSem},
}

// functions are by their addresses; none where the recording's end is not known.
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

// lockset is which locks a thread has, in no order. It is not changed once it was
// handed on.
type lockset []uint64

// meets reports whether two threads have the same one.
func (l lockset) meets(other lockset) bool {
	return slices.ContainsFunc(l, func(lock uint64) bool { return slices.Contains(other, lock) })
}

// holder is what is known of a thread's locks: those that it took in the window.
type holder struct {
	ordinal uint64
	locks   lockset
}

type holders struct {
	order *order
	of    map[uint32]*holder
}

// at is the thread of an access or a call, behind the events that it has done.
func (h *holders) at(x *replay.Stepped) *holder {
	t := h.of[x.Thread]
	if t == nil {
		t = &holder{ordinal: x.Ordinal - 1}
		h.of[x.Thread] = t
	}
	for t.ordinal < x.Ordinal {
		t.ordinal++
		if at := h.order.position(x.Thread, t.ordinal); at != 0 && h.order.at(at).taken {
			t.take(h.order.at(at).object)
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
