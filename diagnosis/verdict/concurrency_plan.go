package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/patterns"
	"diagnose/replay"
)

// order is an experiment on a pattern: replays of a recording in which one side of
// the accesses is kept back.
type order struct {
	what string
	// expect: the failure has to come.
	expect bool
	// failing: of the failing recording the pattern was found in; else of the
	// candidate's passing one.
	failing bool
	holds   []replay.Hold
	// control: a passing run as it is, without which a forced order says nothing.
	control bool
	// first: the other context's accesses come before all of the interrupted one's. If that does
	// not help, it is not that the two were interleaved.
	first bool
	// checks are smaller changes, which tell whether it helps by what it says.
	checks []order
	// kept: the accesses are to come as recorded.
	kept bool
}

// side is one context's part of a pattern.
type side struct {
	thread  uint32
	handler uint8
	// from is the event from which on the thread has to be kept back, so that it
	// neither makes its accesses nor holds their locks; until is the last before
	// them.
	from, until uint64
	// at is from without what is known to be before: an earlier pass, and the sections of the same lock before the last one.
	at   uint64
	name string
}

// sides are those of the first access and of the other context.
func sides(log *evidence.AccessLog, accesses []int) (one, two *side) {
	for _, i := range accesses {
		a := &log.Accesses[i]
		s := &one
		if one != nil && (one.thread != a.Thread || one.handler != a.Handler) {
			s = &two
		}
		if *s == nil {
			*s = &side{thread: a.Thread, handler: a.Handler, from: a.Ordinal, at: a.Ordinal, name: contextName(log, a)}
		}
		(*s).until = max((*s).until, a.Ordinal)
		(*s).beginBy(log, i)
		(*s).widen(log, i)
	}
	return one, two
}

// beginBy has the side begin no later than the critical section around an access.
func (s *side) beginBy(log *evidence.AccessLog, index int) {
	s.from, s.at = min(s.from, outermost(log, &log.Accesses[index])), min(s.at, section(log, index))
}

// ofOnePass is how many events of a thread may be between accesses of one pass
// through a function.
const ofOnePass = 8

// widen takes in what the same function does to the word right before and
// after: who is to be first has to be it with all of that.
func (s *side) widen(log *evidence.AccessLog, index int) {
	a := &log.Accesses[index]
	same := func(b *evidence.Access) bool {
		return b.Thread == a.Thread && b.Handler == a.Handler && b.Variable == a.Variable && b.Offset == a.Offset &&
			log.Contexts[b.Context].Site.Function == log.Contexts[a.Context].Site.Function
	}
	earlier := false // there was an earlier pass
	for i := index - 1; i >= 0 && log.Accesses[i].Position+ofOnePass*ofOnePass >= a.Position; i-- {
		b := &log.Accesses[i]
		switch {
		case !same(b):
		case b.PC >= a.PC:
			earlier = true
		case b.Ordinal+ofOnePass < a.Ordinal:
		case earlier:
			s.from = min(s.from, outermost(log, b))
		default:
			s.beginBy(log, i)
		}
	}
	for i := index + 1; i < len(log.Accesses) && log.Accesses[i].Position <= a.Position+ofOnePass*ofOnePass; i++ {
		if b := &log.Accesses[i]; same(b) && b.Ordinal <= a.Ordinal+ofOnePass && b.PC > a.PC {
			s.until = max(s.until, b.Ordinal)
		}
	}
}

// allReads takes in what else the context read of a value by then: the last of several
// reads alone would leave the others as they were.
func (s *side) allReads(log *evidence.AccessLog, index int) {
	a := &log.Accesses[index]
	if a.Kind != evidence.CodeRead {
		return
	}
	for i := index - 1; i >= 0; i-- {
		b := &log.Accesses[i]
		if b.Variable != a.Variable || b.Offset != a.Offset {
			continue
		}
		if b.Kind != evidence.CodeRead {
			return
		}
		if b.Thread == a.Thread && b.Handler == a.Handler {
			s.beginBy(log, i)
		}
	}
}

// wholeCall takes in what the function of an access does to other words around it.
func (s *side) wholeCall(log *evidence.AccessLog, index int) {
	a := &log.Accesses[index]
	for i := range log.Accesses {
		b := &log.Accesses[i]
		if b.Thread != a.Thread || b.Handler != a.Handler || b.Ordinal+ofOnePass < a.Ordinal || b.Ordinal > a.Ordinal+ofOnePass {
			continue
		}
		if log.Contexts[b.Context].Site.Function == log.Contexts[a.Context].Site.Function {
			s.from, s.until = min(s.from, outermost(log, b)), max(s.until, b.Ordinal)
		}
	}
}

// outermost is the event with which the critical section around an access
// began.
func outermost(log *evidence.AccessLog, a *evidence.Access) uint64 {
	from := a.Ordinal
	if int(a.Locks) < len(log.LockSets) {
		for _, l := range log.LockSets[a.Locks] {
			if l.Taken != 0 {
				from = min(from, l.Taken)
			}
		}
	}
	return from
}

// section is outermost as far as the thread is not seen without a lock in between: a lock that it was the last to have is taken again without an
// event.
func section(log *evidence.AccessLog, index int) uint64 {
	a := &log.Accesses[index]
	from := a.Ordinal
	if int(a.Locks) >= len(log.LockSets) {
		return from
	}
	for _, l := range log.LockSets[a.Locks] {
		if l.Taken == 0 {
			continue
		}
		start := l.Taken
		for i := index - 1; i >= 0; i-- {
			b := &log.Accesses[i]
			if b.Thread != a.Thread || b.Handler != a.Handler {
				continue
			}
			if b.Ordinal < start {
				break
			}
			if int(b.Locks) < len(log.LockSets) && !slices.Contains(log.LockSets[b.Locks], l) {
				start = b.Ordinal
				break
			}
		}
		from = min(from, start)
	}
	return from
}

func contextName(log *evidence.AccessLog, a *evidence.Access) string {
	if a.Handler != 0 {
		return "the handler of " + wording.Signal(int(a.Handler))
	}
	t := log.Threads[a.Thread]
	return t.Label()
}

// run is what a plan needs of a recording.
type run struct {
	log *evidence.AccessLog
	// lazy: code between two events runs right before the second.
	lazy bool
	// failing is the thread whose failure ended the run, with its last event; 0: none is
	// known.
	failing uint32
	last    uint64
}

// behind is the event that is done when a side's accesses are. A thread that failed
// there has not done with what it accesses: it has to go on as far as it can.
func (r *run) behind(s *side) replay.EventOf {
	if s.thread == r.failing && s.until >= r.last {
		return replay.EventOf{Thread: s.thread, Ordinal: replay.AsFarAsItCan}
	}
	e := replay.EventOf{Thread: s.thread, Ordinal: s.until}
	if r.lazy {
		e.Ordinal++
	}
	return e
}

// check adds the smaller changes to an order that keeps a side back: from the section of its accesses on, where that began earlier; and as long,
// but after its accesses.
func (r *run) check(o *order, s *side) {
	if s.handler != 0 {
		return
	}
	hold := o.holds[0]
	if s.at > hold.Ordinal {
		hold.Ordinal = s.at
		o.checks = append(o.checks, order{what: fmt.Sprintf("%s kept back only from the section of its accesses on", s.name), failing: true, holds: []replay.Hold{hold}})
	}
	if after := r.behind(s); after.Ordinal != replay.AsFarAsItCan {
		hold.Ordinal = after.Ordinal + 1
		o.checks = append(o.checks, order{what: fmt.Sprintf("%s kept back as long, but after its accesses", s.name), failing: true, kept: true, holds: []replay.Hold{hold}})
	}
}

// plan says which replays would show whether the failure depends on a pattern: a
// function of the logs alone. There may be no passing run.
func plan(c *patterns.Candidate, failing, passing *run) ([]order, error) {
	if c.Pattern == evidence.PatternLockOrder {
		return planLocks(c, failing.log), nil
	}
	if c.Never {
		return planNever(c, failing)
	}
	one, two := sides(failing.log, c.Accesses)
	if len(c.Accesses) == 2 {
		one.allReads(failing.log, c.Accesses[0])
	}
	if two == nil {
		return nil, fmt.Errorf("all accesses of %s are of one context", c.Key)
	}
	back := order{
		what: fmt.Sprintf("%s kept back until %s is past its accesses", one.name, two.name), failing: true, first: true,
		holds: []replay.Hold{{Thread: one.thread, Ordinal: one.from, Until: failing.behind(two)}},
	}
	failing.check(&back, one)
	if len(c.Accesses) == 2 {
		back.first = false
		list := []order{back}
		return append(list, planForced(c, passing)...), nil
	}
	between := order{
		what: fmt.Sprintf("%s kept back until %s is past its accesses", two.name, one.name), failing: true,
		holds: []replay.Hold{{Thread: two.thread, Ordinal: two.from, Until: failing.behind(one)}},
	}
	failing.check(&between, two)
	return append([]order{between, back}, planBetween(c, passing)...), nil
}

// unchanged is the passing run as it was recorded.
var unchanged = order{what: "the passing run again", control: true}

// planForced makes a passing run take the failing order.
func planForced(c *patterns.Candidate, passing *run) []order {
	if passing == nil || len(c.Passing) != 2 {
		return nil
	}
	first, second := sides(passing.log, c.Passing)
	first.allReads(passing.log, c.Passing[0])
	if second == nil || first.thread == second.thread {
		return nil
	}
	return []order{unchanged, {
		what:   fmt.Sprintf("the passing run, with %s kept back until %s is past its accesses", first.name, second.name),
		expect: true,
		holds:  []replay.Hold{{Thread: first.thread, Ordinal: first.from, Until: passing.behind(second)}},
	}}
}

// planBetween makes a passing run take the failing order of an interleaving: the other
// thread comes when the one is past its first access, which waits with its second.
func planBetween(c *patterns.Candidate, passing *run) []order {
	if passing == nil || len(c.Passing) < 3 {
		return nil
	}
	own, other := apartIn(passing.log, c.Passing)
	if len(own) != 2 || len(other) == 0 {
		return nil
	}
	log := passing.log
	first, second := &log.Accesses[own[0]], &log.Accesses[own[1]]
	between, _ := sides(log, other)
	if between.until = log.Accesses[other[0]].Ordinal; c.Pattern == evidence.PatternPair {
		between.wholeCall(log, other[0])
	}
	waits, _ := sides(log, own)
	from := outermost(log, second)
	if from <= first.Ordinal {
		from = first.Ordinal + 1
	}
	if from > second.Ordinal || first.Thread == between.thread || first.Handler != 0 || between.handler != 0 {
		return nil // there is no event between
	}
	holds := []replay.Hold{{Thread: waits.thread, Ordinal: from, Until: passing.behind(between)}}
	what := fmt.Sprintf("the passing run, with %s kept back between its accesses until %s is past its own", waits.name, between.name)
	if other[0] < own[0] {
		was := side{thread: first.Thread, until: first.Ordinal}
		holds = append([]replay.Hold{{Thread: between.thread, Ordinal: between.from, Until: passing.behind(&was)}}, holds...)
		what = fmt.Sprintf("the passing run, with %s kept back until %s is past its first access, and that until %[1]s is past its own", between.name, waits.name)
	}
	return []order{unchanged, {what: what, expect: true, holds: holds}}
}

// apartIn are the accesses of a passing run of the context that has two of them, at
// its ends, and the others.
func apartIn(log *evidence.AccessLog, accesses []int) (own, other []int) {
	var lists [2][]int
	for _, i := range accesses {
		a, n := &log.Accesses[i], 0
		if len(lists[0]) > 0 {
			if b := &log.Accesses[lists[0][0]]; a.Thread != b.Thread || a.Handler != b.Handler {
				n = 1
			}
		}
		lists[n] = append(lists[n], i)
	}
	if len(lists[0]) < len(lists[1]) {
		lists[0], lists[1] = lists[1], lists[0]
	}
	return lists[0], lists[1]
}

// planNever lets the other thread go on to the access that the failing run did
// not come to.
func planNever(c *patterns.Candidate, failing *run) ([]order, error) {
	log := failing.log
	a := &log.Accesses[c.Accesses[0]]
	one, _ := sides(log, c.Accesses)
	var list []order
	for _, thread := range threadsOf(log) {
		if thread != a.Thread {
			other := log.Threads[thread]
			list = append(list, order{
				what: fmt.Sprintf("%s kept back while %s can run", one.name, other.Label()), failing: true,
				holds: []replay.Hold{{Thread: one.thread, Ordinal: one.from, Until: replay.EventOf{Thread: thread, Ordinal: replay.AsFarAsItCan}}},
			})
		}
	}
	return list, nil
}

// threadsOf are some of the threads in a log, by number.
func threadsOf(log *evidence.AccessLog) []uint32 {
	const most = 4
	var list []uint32
	for n := uint32(1); int(n) <= len(log.Threads)+1 && len(list) < most; n++ {
		if _, ok := log.Threads[n]; ok {
			list = append(list, n)
		}
	}
	return list
}

// planLocks lets one of the threads take and leave all its locks first.
func planLocks(c *patterns.Candidate, log *evidence.AccessLog) []order {
	var list []order
	for _, i := range c.Acquisitions {
		a := &log.Acquisitions[i]
		from := a.Ordinal
		for _, l := range log.LockSets[a.Held] {
			if l.Taken != 0 {
				from = min(from, l.Taken)
			}
		}
		for _, j := range c.Acquisitions {
			other := &log.Acquisitions[j]
			if other.Thread == a.Thread {
				continue
			}
			held, free := log.Threads[a.Thread], log.Threads[other.Thread]
			list = append(list, order{
				what: fmt.Sprintf("%s kept from its locks while %s can run", held.Label(), free.Label()), failing: true,
				holds: []replay.Hold{{Thread: a.Thread, Ordinal: from, Until: replay.EventOf{Thread: other.Thread, Ordinal: replay.AsFarAsItCan}}},
			})
			break
		}
	}
	return list
}
