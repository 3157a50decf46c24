package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// deadlocks are the rings of waiting threads that the core shows: what is left to
// find out is whether they are the failure.
func (w *work) deadlocks() error {
	for i := range w.Case.Findings {
		f := &w.Case.Findings[i]
		if f.Kind != evidence.FindingDeadlock {
			continue
		}
		links, err := waiters(w.rec, f)
		if err != nil {
			w.progress.failedPart(err)
			continue
		}
		w.out.Causes = append(w.out.Causes, w.deadlock(f, links))
		if err := w.progress.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// inDeadlock reports whether a ring of locks is a deadlock that the core shows.
func (r *race) inDeadlock(c *patterns.Candidate) bool {
	log := r.failing[c.Run].log
	return len(c.Acquisitions) > 0 && slices.ContainsFunc(r.Case.Findings, func(f evidence.Finding) bool {
		return f.Kind == evidence.FindingDeadlock && !slices.ContainsFunc(c.Acquisitions, func(i int) bool {
			return !slices.ContainsFunc(f.Wait, func(e evidence.WaitEdge) bool { return e.Object == log.Acquisitions[i].Lock.Address })
		})
	})
}

// waiter is a thread of the ring: it has held a lock since an event, and waits
// for another.
type waiter struct {
	edge      *evidence.WaitEdge
	thread    uint32
	held      evidence.Lock
	last      uint64 // its last event
	lastPlace uint64 // the position of that
}

// waiters finds the threads of a ring in the recording, and since when they hold
// what the thread before them waits for.
func waiters(rec *record.Recording, f *evidence.Finding) ([]waiter, error) {
	list := make([]waiter, len(f.Wait))
	for i := range f.Wait {
		e := &f.Wait[i]
		before := &f.Wait[(i+len(f.Wait)-1)%len(f.Wait)]
		list[i] = waiter{edge: e, held: evidence.Lock{Address: before.Object, Name: before.Name, Path: before.OwnerPath}}
	}
	numbers := map[int]uint32{}
	position := uint64(0)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			return nil, err
		}
		position++
		if e.Kind == eventlog.KindStart && len(e.Args) > 1 {
			numbers[int(e.Args[1])] = e.Thread
		}
		for i := range list {
			x := &list[i]
			if numbers[x.edge.Waiter.TID] != e.Thread {
				continue
			}
			x.thread, x.last, x.lastPlace = e.Thread, e.Ordinal, position
			if takes(e) && evidence.Addr(e.Object) == x.held.Address {
				x.held.Taken = e.Ordinal
			}
		}
	}
	for i := range list {
		if list[i].thread == 0 || list[i].held.Taken == 0 {
			return nil, fmt.Errorf("the recording does not say since when %s holds %s", list[i].edge.Waiter.Label(), lockText(&list[i].held))
		}
	}
	return list, nil
}

// takes reports whether an event is a lock's acquisition.
func takes(e *eventlog.Event) bool {
	return e.Result == 0 && (e.Kind == eventlog.KindMutex || e.Kind == eventlog.KindRWLock || e.Kind == eventlog.KindSpin)
}

// waitedLock is the lock that a thread waits for, as that names it.
func waitedLock(e *evidence.WaitEdge) evidence.Lock {
	return evidence.Lock{Address: e.Object, Name: e.Name, Path: e.Path}
}

func lockText(l *evidence.Lock) string {
	switch {
	case l.Name != "":
		return l.Name
	case l.Path != "":
		return fmt.Sprintf("%v (%s)", l.Address, l.Path)
	}
	return l.Address.String()
}

// deadlock is the cause, and what the failure does when one of the threads comes
// later.
func (w *work) deadlock(f *evidence.Finding, ring []waiter) evidence.Cause {
	i := &evidence.Interleaving{
		Pattern: evidence.PatternLockOrder, FailingRuns: 1, FailingOf: len(w.Failing), PassingOf: len(w.Passing), Score: 1,
		Measure: "what each thread of the core waits for", Instead: "without the deadlock one thread has left its locks before the other takes its first",
	}
	out := evidence.Cause{Kind: evidence.CauseDeadlock, Proof: evidence.Replayed, Interleaving: i}
	var parts []string
	for n := range ring {
		x := &ring[n]
		wanted := waitedLock(x.edge)
		i.Variables = append(i.Variables, lockText(&wanted))
		i.Failing = append(i.Failing, evidence.SeenAccess{
			Moment: evidence.Moment{Thread: x.thread, Ordinal: x.last}, Position: x.lastPlace, Thread: x.edge.Waiter, Variable: lockText(&wanted),
			Identity: w.lockIdentity(&wanted), Address: x.edge.Object, Size: 4, Kind: evidence.ReadWrite, Site: x.edge.Site, Locks: []evidence.Lock{x.held},
		})
		place := "somewhere"
		if x.edge.Site != nil {
			place = siteText(x.edge.Site)
		}
		parts = append(parts, fmt.Sprintf("%s waits for %s in %s and holds %s", x.edge.Waiter.Label(), lockText(&wanted), place, lockText(&x.held)))
		out.Story = append(out.Story, evidence.CauseStep{Text: parts[n], Site: x.edge.Site, Proof: evidence.FromCore})
	}
	slices.Sort(i.Variables)
	slices.SortStableFunc(i.Failing, func(a, b evidence.SeenAccess) int { return int(int64(a.Position - b.Position)) })
	out.Summary, out.Variable, out.Site = "deadlock: "+strings.Join(parts, ", "), namesText(i.Variables), i.Failing[0].Site
	i.Identities = w.identities(i, nil)
	w.passingOrder(i)
	w.proveDeadlock(&out, ring)
	return out
}

// passingOrder shows how a passing run takes the locks of a ring while it holds others
// of them: in the same orders, but one thread behind the other.
func (w *work) passingOrder(i *evidence.Interleaving) {
	if len(w.Passing) == 0 {
		return
	}
	opts := w.tracer.options("locks of passing run 1")
	opts.LockOrder = true
	plan, err := watchtrace.NewPlan(w.Passing[0], nil, opts)
	if err != nil {
		w.progress.failedPart(err)
		return
	}
	log, err := plan.Trace(w.progress.ctx)
	if err != nil {
		w.progress.limit(evidence.Limit{Code: evidence.LimitLockOrders, Subject: w.Passing[0].Dir, Reason: err.Error()})
		return
	}
	w.tracer.covered(log)
	for _, failing := range i.Failing {
		if n := sameOrder(log, &failing); n >= 0 {
			i.Passing = append(i.Passing, w.acquired(log, n))
		}
	}
	slices.SortStableFunc(i.Passing, func(a, b evidence.SeenAccess) int { return cmp.Compare(a.Position, b.Position) })
	switch missing := len(i.Failing) - len(i.Passing); {
	case missing > 0:
		i.Instead = fmt.Sprintf("in the passing run %d of the %d orders of locks do not come", missing, len(i.Failing))
	default:
		i.Instead = "in the passing run the locks are taken in the same orders, but not at the same time"
	}
}

// sameOrder is where a run takes a lock while it holds the same one; -1: nowhere.
func sameOrder(log *evidence.AccessLog, failing *evidence.SeenAccess) int {
	return slices.IndexFunc(log.Acquisitions, func(a evidence.Acquisition) bool {
		return !a.Waiting && a.Lock.Address == failing.Address && slices.ContainsFunc(log.LockSets[a.Held], func(held evidence.Lock) bool {
			return slices.ContainsFunc(failing.Locks, func(l evidence.Lock) bool { return l.Address == held.Address })
		})
	})
}

// proveDeadlock lets each thread of the ring come behind another one, until the
// failure is gone once.
func (w *work) proveDeadlock(out *evidence.Cause, ring []waiter) {
	again := w.experiments.unchanged(w.rec)
	out.Experiments = append(out.Experiments, again)
	schedule, err := w.rec.Log.Schedule()
	if len(schedule) == 0 {
		w.progress.limit(evidence.Limit{Code: evidence.LimitRecordedOrder, Reason: err.Error()})
		return
	}
	for n := range ring {
		x, next := &ring[n], &ring[(n+1)%len(ring)]
		e := w.experiments.replayed(fmt.Sprintf("%s kept from %s while %s can run", x.edge.Waiter.Label(), lockText(&x.held), next.edge.Waiter.Label()),
			w.rec, replay.FreeRequest{Schedule: replay.Reorder(schedule, replay.Hold{
				Thread: x.thread, Ordinal: x.held.Taken, Until: replay.EventOf{Thread: next.thread, Ordinal: replay.AsFarAsItCan}})}, false)
		claim := evidence.Event{Thing: lockText(&x.held), At: evidence.Moment{Thread: x.thread, Ordinal: x.held.Taken}}
		e.Change = &claim
		out.Experiments = append(out.Experiments, e)
		if again.Agrees() && e.Agrees() {
			w.experiments.proveBy(out, claim)
			return
		}
	}
}
