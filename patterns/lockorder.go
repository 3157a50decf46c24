package patterns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/evidence"
)

// wait is that a lock was taken, or waited for, while another was held.
type wait struct {
	held, wanted evidence.Addr
	thread       uint32
	waiting      bool
	acquisition  int
	locks        []evidence.Lock // all that were held
}

// collectLockOrders finds locks that threads take in opposite orders, or in a
// ring. One of which all wait is the deadlock itself; else it might have been.
func (f *finder) collectLockOrders() {
	found := make([]map[string]Candidate, len(f.runs.Failing))
	passing := map[string]int{}
	for i, run := range f.runs.Failing {
		found[i] = lockCycles(run)
	}
	for _, run := range f.runs.Passing {
		for k := range lockCycles(run) {
			passing[k]++
		}
	}
	done := map[string]bool{}
	for i, cycles := range found {
		for k, c := range cycles {
			if done[k] {
				continue
			}
			done[k] = true
			c.Key, c.Run, c.FailingOf, c.PassingOf, c.PassingRuns = k, i, len(found), len(f.passing), passing[k]
			for _, other := range found {
				if _, ok := other[k]; ok {
					c.FailingRuns++
				}
			}
			f.result.Seen++
			if !c.predicts() {
				f.result.Common++
				continue
			}
			f.result.Candidates = append(f.result.Candidates, c)
		}
	}
}

// mostWaits and mostSteps bound the search for cycles.
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

// longestCycle is how many locks a ring may have.
const longestCycle = 5

// lockCycles are the rings of a run, by their key.
func lockCycles(run *delta.Run) map[string]Candidate {
	waits := waitsOf(run)
	byHeld := map[evidence.Addr][]int{}
	for i, w := range waits {
		byHeld[w.held] = append(byHeld[w.held], i)
	}
	cycles := map[string]Candidate{}
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
				addCycle(run, waits, more, cycles)
			} else if len(more) < longestCycle {
				walk(more)
			}
		}
	}
	for i := range waits {
		walk([]int{i})
	}
	return cycles
}

// joins reports whether a wait can be at the same time as those of the path: of
// another thread, and without a lock that one of them holds as well.
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

func addCycle(run *delta.Run, waits []wait, path []int, cycles map[string]Candidate) {
	log := run.Log
	c := Candidate{Pattern: evidence.PatternLockOrder}
	var places []string
	for _, i := range path {
		a := &log.Acquisitions[waits[i].acquisition]
		c.Acquisitions = append(c.Acquisitions, waits[i].acquisition)
		c.Variables = append(c.Variables, lockName(&a.Lock))
		places = append(places, log.Contexts[a.Context].Key)
	}
	slices.SortFunc(c.Acquisitions, cmp.Compare[int])
	slices.Sort(c.Variables)
	slices.Sort(places)
	what := "in opposite orders"
	if waits[path[0]].waiting {
		what = "each waits"
		c.changed = true
	}
	key := fmt.Sprintf("%s %s, %s | %s", evidence.PatternLockOrder, strings.Join(c.Variables, " "), what, strings.Join(places, " | "))
	if _, ok := cycles[key]; !ok {
		cycles[key] = c
	}
}
