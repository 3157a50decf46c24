package ask

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// lockWord is memory of a lock that names the thread that has it, or says that one has.
type lockWord struct {
	addr evidence.Addr
	// change says what a write of the word did.
	change func(old, new uint64) lockChange
}

// lockChange is what a write of a lock's word did.
type lockChange uint8

const (
	lockKept lockChange = iota
	lockTaken
	lockReleased
	readerCame
	readerLeft
)

// Offsets in glibc and in the recording library: __owner of a pthread_mutex_t, __readers and __cur_writer of a pthread_rwlock_t.
const (
	mutexOwner    = 8
	rwlockReaders = 0
	rwlockWriter  = 24
)

// isSet is for words that are 0 while no thread has the lock: the owner of a mutex, the writer of an rwlock, and the futex of
// Rust's std::sync::Mutex (1 locked, 2 locked with waiters).
func isSet(old, new uint64) lockChange {
	switch {
	case old == 0 && new != 0:
		return lockTaken
	case old != 0 && new == 0:
		return lockReleased
	}
	return lockKept
}

// readers is for the count of an rwlock's readers, which is from bit 3 on.
func readers(old, new uint64) lockChange {
	const shift = 3
	switch before, now := uint32(old)>>shift, uint32(new)>>shift; {
	case now == before+1:
		return readerCame
	case now+1 == before:
		return readerLeft
	}
	return lockKept
}

// spin is for a spin lock: of the recording library with 0x80 in the highest byte, where bit 0 says that it is taken; of glibc 1
// while it is free.
func spin(old, new uint64) lockChange {
	const mask, ours = 0xff000000, 0x80000000
	taken := func(v uint64) bool {
		if v&mask == ours {
			return v&1 != 0
		}
		return int32(v) <= 0
	}
	switch before, now := taken(old), taken(new); {
	case !before && now:
		return lockTaken
	case before && !now:
		return lockReleased
	}
	return lockKept
}

// lockWords are the words of a lock at an address, whose kind the events of the log tell, or else the type.
func lockWords(rec *record.Recording, asked string, addr evidence.Addr, typ debuginfo.Type) ([]lockWord, error) {
	for e, err := range rec.Log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		if evidence.Addr(e.Object) != addr {
			continue
		}
		switch e.Kind {
		case eventlog.KindMutex:
			return []lockWord{{addr + mutexOwner, isSet}}, nil
		case eventlog.KindRWLock:
			return []lockWord{{addr + rwlockWriter, isSet}, {addr + rwlockReaders, readers}}, nil
		case eventlog.KindSpin:
			return []lockWord{{addr, spin}}, nil
		}
	}
	if offset, found := futexOf(typ); found {
		return []lockWord{{addr + evidence.Addr(offset), isSet}}, nil
	}
	if typ == nil {
		return nil, &Error{Asked: asked, Problem: fmt.Sprintf("no thread took a lock at %v", addr)}
	}
	return nil, &Error{Asked: asked, Problem: fmt.Sprintf("no thread took a lock at %v, and %s is no type of lock that is known", addr, typ.Name())}
}

// futexOf returns the offset of the futex of a std::sync::Mutex of Rust, inner.futex.v (library/std/src/sys/sync/mutex/futex.rs).
func futexOf(typ debuginfo.Type) (offset int64, found bool) {
	for _, name := range []string{"inner", "futex", "v"} {
		if typ == nil {
			return 0, false
		}
		m, _, found := value.FindMember(typ, name)
		if !found {
			return 0, false
		}
		offset, typ = offset+m.Offset, m.Type
	}
	return offset, typ != nil && typ.Size() == futexSize
}
