package patterns

import (
	"diagnose/delta"
	"diagnose/evidence"
)

func locksOf(run *delta.Run, a *evidence.Access) []evidence.Lock {
	if len(run.Log.LockSets) == 0 {
		return nil
	}
	return run.Log.LockSets[a.Locks]
}

// locking is what locks say about a pattern.
type locking struct {
	// guard is held at all accesses, and not for reading only; released: it was
	// not held from the first to the last of one context.
	guard    *evidence.Lock
	released bool
	// never: the pattern cannot be, for the guard was held all the time.
	never bool
	// missing is held at some accesses and not at others; reading: at all of them, but
	// for reading only.
	missing *evidence.Lock
	reading bool
}

// lockingOf judges the accesses of a pattern, in the order of the pattern; the
// first and the last are of one context if there are more than two.
func lockingOf(run *delta.Run, accesses []int32) locking {
	var l locking
	if log := run.Log.Accesses; log[accesses[0]].Thread == log[accesses[1]].Thread {
		return l // a handler has the locks of the code that it interrupted
	}
	var all [4][]evidence.Lock
	sets := all[:len(accesses)]
	for i, index := range accesses {
		sets[i] = locksOf(run, &run.Log.Accesses[index])
	}
	first, last := sets[0], sets[len(sets)-1]
	for i := range first {
		lock := &first[i]
		if !everywhere(sets, lock.Address) {
			continue
		}
		l.guard = lock
		if len(sets) == 2 {
			return l
		}
		if again := held(last, lock.Address); again.Taken == lock.Taken {
			l.never = true
			return l
		}
		l.released = true
	}
	if l.guard == nil {
		l.missing = missingLock(sets)
	}
	if l.guard == nil && l.missing == nil {
		l.missing = readingLock(sets)
		l.reading = l.missing != nil
	}
	return l
}

// everywhere reports whether the lock is in all sets, at most one context of
// which has it for reading only.
func everywhere(sets [][]evidence.Lock, lock evidence.Addr) bool {
	shared := true
	for _, set := range sets {
		l := held(set, lock)
		if l == nil {
			return false
		}
		shared = shared && l.Shared
	}
	return !shared
}

// readingLock is one that is held at all accesses, and for reading only: it does not keep
// those apart that write.
func readingLock(sets [][]evidence.Lock) *evidence.Lock {
	for i := range sets[0] {
		everywhere := true
		for _, set := range sets {
			l := held(set, sets[0][i].Address)
			everywhere = everywhere && l != nil && l.Shared
		}
		if everywhere {
			return &sets[0][i]
		}
	}
	return nil
}

// missingLock is one that is held at one access and not at another; that of the
// most accesses.
func missingLock(sets [][]evidence.Lock) *evidence.Lock {
	var best *evidence.Lock
	most := 0
	for _, set := range sets {
		for i := range set {
			n := 0
			for _, other := range sets {
				if held(other, set[i].Address) != nil {
					n++
				}
			}
			if n > most && n < len(sets) {
				best, most = &set[i], n
			}
		}
	}
	return best
}

func held(set []evidence.Lock, lock evidence.Addr) *evidence.Lock {
	for i := range set {
		if set[i].Address == lock {
			return &set[i]
		}
	}
	return nil
}

// lockName is how a lock is called.
func lockName(l *evidence.Lock) string {
	if l == nil {
		return ""
	}
	if l.Name != "" {
		return l.Name
	}
	return l.Address.String()
}
