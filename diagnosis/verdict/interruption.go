package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/patterns"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// interruption is an order of accesses of some code and of a signal's handler that
// interrupted it, in one thread of one run. Its replays let the signal come at another
// access, and read in a log of their own accesses whether the order is another then.
type interruption struct {
	*race
	run *traced
	// signal is the arrival in whose handler the access was made, by the instruction at
	// handlerPC; arrivals are the events of all those up to the last access. There are none
	// where the run ended before, and signal is a passing run's.
	signal    *eventlog.Event
	handlerPC evidence.Addr
	arrivals  []uint64
	// words are those of the accesses, list the log's accesses to them, in time, and own
	// the positions in list of those that the interrupted code made before the signal.
	words []replay.Watch
	list  []int
	own   []int
	// began is the handler's first access, handled the one of the order, and later the
	// interrupted code's after it, as positions in list; -1: it made none.
	began, handled, later int
}

// mostSteps bounds how many accesses before the signal are looked at for the one from
// which on it must not come.
const mostSteps = 256

// interrupts reports whether a pattern is one of a signal's handler and of the code that
// it interrupted.
func interrupts(c *patterns.Candidate, log *evidence.AccessLog) bool {
	if len(c.Accesses) < 2 || len(c.Acquisitions) > 0 {
		return false
	}
	one, two := sides(log, c.Accesses)
	return two != nil && one.thread == two.thread
}

// newInterruption finds the signal and the accesses around it. The accesses are a
// pattern's, in time.
func (r *race) newInterruption(t *traced, accesses []int) (*interruption, error) {
	x := &interruption{race: r, run: t, handled: -1, later: -1}
	handled := middle(t.log, accesses)
	a := &t.log.Accesses[handled]
	if err := x.watch(accesses); err != nil {
		return nil, err
	}
	outer := &t.log.Accesses[accesses[0]]
	if accesses[0] == handled {
		outer = &t.log.Accesses[accesses[len(accesses)-1]]
	}
	x.handled, _ = slices.BinarySearch(x.list, handled)
	x.handlerPC = a.PC
	if last := accesses[len(accesses)-1]; last > handled {
		x.later, _ = slices.BinarySearch(x.list, last)
	}
	if err := x.arrived(a, x.until()); err != nil {
		return nil, err
	}
	x.since(outer)
	x.began = x.handled
	for x.began > 0 && x.at(x.began-1).Handler == a.Handler && x.at(x.began-1).Ordinal >= x.arrivals[0] {
		x.began--
	}
	return x, nil
}

// newMissed is for a failing run that ended before the handler's access came: the signal
// is that of a passing run.
func (r *race) newMissed(t *traced, access int, in *interruption) (*interruption, error) {
	x := &interruption{race: r, run: t, signal: in.signal, handlerPC: in.handlerPC, handled: -1, later: -1}
	if err := x.watch([]int{access}); err != nil {
		return nil, err
	}
	a := &t.log.Accesses[access]
	for i, j := range x.list {
		if b := &t.log.Accesses[j]; j <= access && b.Thread == a.Thread && b.Handler == a.Handler {
			x.own, x.began = append(x.own, i), i+1
		}
	}
	return x, nil
}

// middle is the access that was made in the handler: of two handlers, the one that
// interrupted the other.
func middle(log *evidence.AccessLog, accesses []int) int {
	switch {
	case len(accesses) > 2:
		return accesses[1]
	case len(accesses) == 1:
		return accesses[0]
	}
	if log.Accesses[accesses[1]].Handler == 0 {
		return accesses[0]
	}
	return accesses[1]
}

// watch sets the words of the accesses: two at most, as the signals and the moments
// need debug registers as well.
func (x *interruption) watch(accesses []int) error {
	const most = 2
	log := x.run.log
	for _, i := range accesses {
		a := &log.Accesses[i]
		v := &log.Variables[a.Variable]
		if v.Partial() {
			return fmt.Errorf("not all accesses to %s are known", v.Name)
		}
		w := replay.Watch{Addr: v.Address + evidence.Addr(a.Offset), Size: int(a.Size)}
		if !slices.Contains(x.words, w) {
			x.words = append(x.words, w)
		}
	}
	if len(x.words) > most {
		return fmt.Errorf("the accesses are to %d words, and %d can be watched beside a signal", len(x.words), most)
	}
	for i := range log.Accesses {
		if x.watches(&log.Accesses[i]) {
			x.list = append(x.list, i)
		}
	}
	return nil
}

func (x *interruption) watches(a *evidence.Access) bool {
	at := x.run.log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return slices.Contains(x.words, replay.Watch{Addr: at, Size: int(a.Size)})
}

// until is the last event before the interrupted code's access after the handler; 0: it
// made none.
func (x *interruption) until() uint64 {
	if x.later < 0 {
		return 0
	}
	return x.at(x.later).Ordinal
}

// at is an access of the list.
func (x *interruption) at(i int) *evidence.Access { return &x.run.log.Accesses[x.list[i]] }

// arrived finds the signal in whose handler an access was made, and those of its number
// that came after it, up to an event.
func (x *interruption) arrived(a *evidence.Access, until uint64) error {
	for _, event := range arrivalsOf(x.run.rec, a) {
		if event <= a.Ordinal {
			x.arrivals = []uint64{event}
		} else if event <= until {
			x.arrivals = append(x.arrivals, event)
		}
	}
	if len(x.arrivals) == 0 || x.arrivals[0] < 2 {
		return fmt.Errorf("the arrival of %s in thread %d is not in the log", wording.Signal(int(a.Handler)), a.Thread)
	}
	for e, err := range x.run.rec.Log.Events(a.Thread) {
		if err != nil {
			return err
		}
		if e.Ordinal == x.arrivals[0] {
			x.signal = e
			return nil
		}
	}
	return fmt.Errorf("event %d of thread %d is not in the log", x.arrivals[0], a.Thread)
}

// arrivalsOf are those of the signal in whose handler an access was made, as events of its
// thread. Those within a handler of that signal are left out.
func arrivalsOf(rec *record.Recording, a *evidence.Access) (list []uint64) {
	depth, own := 0, 0 // of handlers, and that of the signal's own; 0: not in it
	for e, err := range rec.Log.Events(a.Thread) {
		if err != nil {
			break // what is missing is after all that was traced
		}
		switch e.Kind {
		case eventlog.KindSignal:
			depth++
			if own == 0 && e.Object == uint64(a.Handler) {
				list, own = append(list, e.Ordinal), depth
			}
		case eventlog.KindSignalEnd:
			if own == depth {
				own = 0
			}
			depth--
		}
	}
	return list
}

// since notes what the interrupted code accessed since the signal's last arrival.
func (x *interruption) since(outer *evidence.Access) {
	for i := x.handled - 1; i >= 0 && len(x.own) < mostSteps; i-- {
		a := x.at(i)
		if a.Thread != outer.Thread || a.Ordinal >= x.arrivals[0] {
			continue
		}
		if a.Handler == x.at(x.handled).Handler {
			break
		}
		if a.Handler == outer.Handler {
			x.own = append(x.own, i)
		}
	}
	slices.Reverse(x.own)
}

// seenHit is an access that a replay saw.
type seenHit struct {
	pc   evidence.Addr
	kind evidence.AccessCode
}

// moved is one replay with the signal at another place.
type moved struct {
	hits []seenHit
	// raised is how many accesses there had been when the signal came; -1: it did not.
	raised int
}

// mostSeenHits bounds the accesses that a replay keeps: as many as a pass logs.
const mostSeenHits = watchtrace.DefaultHits

// find is the first access by an instruction in a part of a replay's accesses; -1: none.
func (m *moved) find(pc evidence.Addr, from, to int) int {
	for i := max(from, 0); i < min(to, len(m.hits)); i++ {
		if m.hits[i].pc == pc {
			return i
		}
	}
	return -1
}
