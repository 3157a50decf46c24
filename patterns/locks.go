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

// locking is the relation of locks to a pattern.
type locking struct {
	// guard is held at all accesses, and not only for reading; released: one
	// context did not hold it throughout, from its first to its last access.
	guard    *evidence.Lock
	released bool
	// never: the pattern is impossible, because the guard was held all the
	// time.
	never bool
	// missing is held at some accesses and not at others; reading: at all of them, but
	// only for reading.
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

// everywhere reports whether the lock is in all sets, with at most one context
// that holds it only for reading.
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

// readingLock is a lock that is held at all accesses, but only for reading: it does not
// exclude writers that hold it so.
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

// missingLock is a lock that is held at one access and not at another; of
// several, the one held at the most accesses.
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

// lockName returns a lock's name.
func lockName(l *evidence.Lock) string {
	if l == nil {
		return ""
	}
	if l.Name != "" {
		return l.Name
	}
	return l.Address.String()
}
