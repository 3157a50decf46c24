package explore

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

// does is what a function of the recording library does with a lock.
type does uint8

const (
	nothing does = iota
	takes
	gives
	signals // others may go on behind it
)

var functions = map[string]does{
	"pthread_mutex_lock": takes, "pthread_mutex_unlock": gives, "pthread_spin_lock": takes, "pthread_spin_unlock": gives,
	"mtx_lock": takes, "mtx_unlock": gives, "pthread_mutex_trylock": signals, "pthread_rwlock_unlock": signals,
	"pthread_rwlock_rdlock": signals, "pthread_rwlock_wrlock": signals, "pthread_cond_signal": signals,
	"pthread_cond_broadcast": signals, "cnd_signal": signals, "cnd_broadcast": signals, "sem_post": signals,
}

// functions are by their addresses; none where the recording's end is not known.
func (s *search) functions() map[evidence.Addr]does {
	known := map[evidence.Addr]does{}
	path, err := s.rec.Core()
	if err != nil {
		return known
	}
	core, err := image.OpenCore(path, s.opts.Image)
	if err != nil {
		return known
	}
	defer core.Close()
	for name, what := range functions {
		if symbol, found := core.SymbolNamed(name); found {
			known[symbol.Addr] = what
		}
	}
	return known
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
