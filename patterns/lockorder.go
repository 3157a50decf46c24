package patterns

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/evidence"
)

// wait is an acquisition of a lock, or a wait for it, while another lock was
// held.
type wait struct {
	held, wanted evidence.Addr
	thread       uint32
	waiting      bool
	acquisition  int
	locks        []evidence.Lock // all that were held
}

// ring is a set of locks that threads take in orders that may block them all.
type ring struct {
	key          string
	locks        []string
	acquisitions []int
	waiting      bool // they did
}

// collectLockOrders finds locks that threads take in opposite orders, or in a
// ring. If all its threads wait, it is the deadlock itself; otherwise it is a
// possible one.
func (f *finder) collectLockOrders() {
	failing, passing := ringsOf(f.runs.Failing), ringsOf(f.runs.Passing)
	done := map[string]bool{}
	for i, rings := range failing {
		for k, r := range rings {
			if !done[k] {
				done[k] = true
				f.addEntry(entry{ring: r, run: int32(i), seen: sighting{free: true}, failing: count(failing, k), passing: count(passing, k), passingOf: int32(len(f.passing))})
			}
		}
	}
}

func ringsOf(runs []*delta.Run) []map[string]*ring {
	var list []map[string]*ring
	for _, run := range runs {
		list = append(list, lockRings(run))
	}
	return list
}

func count(list []map[string]*ring, key string) int32 {
	n := int32(0)
	for _, rings := range list {
		if rings[key] != nil {
			n++
		}
	}
	return n
}

// mostWaits and mostSteps bound the search for rings.
const (
	mostWaits = 2000
	mostSteps = 1 << 18
)

func waitsOf(run *delta.Run) []wait {
	log := run.Log
	seen := map[[3]uint64]int{}
	var list []wait
	for i, a := range log.Acquisitions {
		if a.Held < 0 || int(a.Held) >= len(log.LockSets) || a.Context < 0 || int(a.Context) >= len(log.Contexts) {
			continue
		}
		for _, held := range log.LockSets[a.Held] {
			if held.Address == a.Lock.Address {
				continue
			}
			w := wait{held.Address, a.Lock.Address, a.Thread, a.Waiting, i, log.LockSets[a.Held]}
			id := [3]uint64{uint64(held.Address), uint64(a.Lock.Address), uint64(a.Thread)<<1 | uint64(bit(a.Waiting))}
			if _, ok := seen[id]; !ok && len(list) < mostWaits {
				seen[id] = len(list)
				list = append(list, w)
			}
		}
	}
	return list
}

// longestRing is the maximum number of locks in a ring.
const longestRing = 5

// lockRings returns the rings of a run, by their key.
func lockRings(run *delta.Run) map[string]*ring {
	waits := waitsOf(run)
	byHeld := map[evidence.Addr][]int{}
	for i, w := range waits {
		byHeld[w.held] = append(byHeld[w.held], i)
	}
	rings := map[string]*ring{}
	steps := 0
	var walk func(path []int)
	walk = func(path []int) {
		last := &waits[path[len(path)-1]]
		if steps++; steps > mostSteps {
			return
		}
		for _, next := range byHeld[last.wanted] {
			if !joins(waits, path, next) {
				continue
			}
			if more := append(slices.Clone(path), next); waits[next].wanted == waits[path[0]].held {
				addRing(run, waits, more, rings)
			} else if len(more) < longestRing {
				walk(more)
			}
		}
	}
	for i := range waits {
		walk([]int{i})
	}
	return rings
}

// joins reports whether a wait can happen at the same time as those of the
// path: it is of another thread, and holds no lock that one of them holds,
// unless both hold it for reading.
func joins(waits []wait, path []int, next int) bool {
	for _, i := range path {
		if waits[i].thread == waits[next].thread || waits[i].waiting != waits[next].waiting {
			return false
		}
		for _, l := range waits[i].locks {
			if other := held(waits[next].locks, l.Address); other != nil && (!l.Shared || !other.Shared) {
				return false
			}
		}
	}
	return true
}

func addRing(run *delta.Run, waits []wait, path []int, rings map[string]*ring) {
	log := run.Log
	r := &ring{waiting: waits[path[0]].waiting}
	var places []string
	for _, i := range path {
		a := &log.Acquisitions[waits[i].acquisition]
		r.acquisitions = append(r.acquisitions, waits[i].acquisition)
		r.locks = append(r.locks, lockName(&a.Lock))
		places = append(places, log.Contexts[a.Context].Key)
	}
	slices.Sort(r.acquisitions)
	slices.Sort(r.locks)
	slices.Sort(places)
	what := "in opposite orders"
	if r.waiting {
		what = "each waits"
	}
	r.key = fmt.Sprintf("%s %s, %s | %s", evidence.PatternLockOrder, strings.Join(r.locks, " "), what, strings.Join(places, " | "))
	if rings[r.key] == nil {
		rings[r.key] = r
	}
}
