package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// chromeEvent is one of the Trace Event Format's (Google's document of that
// name): ph i is an instant, X a duration, b and e the ends of one that is no
// thread's, C a counter, M metadata; ts and dur are in microseconds.
type chromeEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     float64        `json:"ts"`
	Duration float64        `json:"dur,omitempty"`
	PID      int            `json:"pid"`
	TID      uint32         `json:"tid"`
	ID       string         `json:"id,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

const (
	// chromeAround is how many events are shown before the first access and after the
	// last one; chromeEvents bounds those shown in all.
	chromeAround, chromeEvents = 100, 100_000
)

// chromeTrace is a trace in the Trace Event Format. A replay has no clock, so time
// is the order of events and accesses, one a microsecond.
type chromeTrace struct {
	report *traceReport
	events []chromeEvent
	now    float64
	next   int // the access that is next in time
	// tickets and times are those of the recording's events, in order. The beginning of a wait is
	// between two of them.
	tickets []uint64
	times   []float64
	// taken has the times of a thread's events that acquired locks.
	taken map[lockHolder]float64
	// names are those of locks, by address.
	names map[evidence.Addr]string
	// handlers are the signals that each thread handles, the latest last.
	handlers map[uint32][]chromeEvent
	held     map[lockHold]*chromeHold
	left     int // events that are not shown
}

type lockHolder struct {
	thread  uint32
	ordinal uint64
}

// lockHold is one acquisition of a lock, as far as the accesses show it.
type lockHold struct {
	thread uint32
	lock   evidence.Addr
	taken  uint64
}

type chromeHold struct{ from, to float64 }

func (r *traceReport) chrome(w io.Writer) error {
	c := &chromeTrace{report: r, taken: map[lockHolder]float64{}, names: map[evidence.Addr]string{}, handlers: map[uint32][]chromeEvent{}, held: map[lockHold]*chromeHold{}}
	c.addEvent(chromeEvent{Name: "process_name", Phase: "M", Args: map[string]any{"name": filepath.Base(r.log.Recording)}})
	for n, t := range r.log.Threads {
		c.addEvent(chromeEvent{Name: "thread_name", Phase: "M", TID: n, Args: map[string]any{"name": t.Label()}})
	}
	for _, set := range r.log.LockSets {
		for _, l := range set {
			c.names[l.Address] = lockName(&l)
		}
	}
	if err := c.writeTrace(); err != nil {
		return err
	}
	other := map[string]any{"recording": r.log.Recording}
	if c.left > 0 {
		other["events_left_out"] = c.left
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"traceEvents": c.events, "otherData": other})
}

func lockName(l *evidence.Lock) string {
	if l.Name != "" {
		return l.Name
	}
	return l.Address.String()
}

func (c *chromeTrace) addEvent(e chromeEvent) {
	e.PID = 1
	c.events = append(c.events, e)
}

// writeTrace writes the recording's events and the accesses in their common order. A recording
// whose log is cut is shown up to the cut.
func (c *chromeTrace) writeTrace() error {
	accesses := c.report.log.Accesses
	var first, last uint64
	if len(accesses) > 0 {
		first, last = accesses[0].Position, accesses[len(accesses)-1].Position
	}
	position, shown := uint64(0), 0
	for e, err := range c.report.events.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return err
		}
		c.accessesBefore(position + 1)
		position++
		if position+chromeAround < first || position > last+chromeAround {
			continue
		}
		if shown++; shown > chromeEvents {
			c.left++
			continue
		}
		c.event(e)
	}
	c.accessesBefore(last + 1)
	c.ends()
	return nil
}

// accessesBefore adds the accesses that were made before the event at a position.
func (c *chromeTrace) accessesBefore(position uint64) {
	list := c.report.log.Accesses
	for ; c.next < len(list) && list[c.next].Position < position; c.next++ {
		c.access(&list[c.next])
	}
}

func (c *chromeTrace) access(a *evidence.Access) {
	x := c.report.access(a)
	c.now++
	c.addEvent(chromeEvent{Name: x.Access + " " + x.Variable, Phase: "i", Time: c.now, TID: x.Thread, Scope: "t", Args: map[string]any{
		"value": valueText(&x), "where": x.where(), "event": x.Event, "position": x.Position, "pc": x.PC.String(), "locks": strings.Join(x.Locks, ", "),
	}})
	if x.Access != string(evidence.Read) {
		c.addEvent(chromeEvent{Name: x.Variable, Phase: "C", Time: c.now, Args: map[string]any{"value": float64(x.New)}})
	}
	for _, l := range c.report.log.LockSets[a.Locks] {
		key := lockHold{a.Thread, l.Address, l.Taken}
		h := c.held[key]
		if h == nil {
			h = &chromeHold{from: c.now}
			if at, known := c.taken[lockHolder{a.Thread, l.Taken}]; known {
				h.from = at
			}
			c.held[key] = h
		}
		h.to = c.now
	}
}

// event adds an event with its duration, which begins where its thread began to wait, if it waited.
func (c *chromeTrace) event(e *eventlog.Event) {
	c.now++
	c.tickets, c.times = append(c.tickets, e.Ticket), append(c.times, c.now)
	c.taken[lockHolder{e.Thread, e.Ordinal}] = c.now
	switch e.Kind {
	case eventlog.KindSignal:
		c.handlers[e.Thread] = append(c.handlers[e.Thread], chromeEvent{Name: "handles " + unix.SignalName(unix.Signal(e.Object)), Category: "signal", Time: c.now})
		return
	case eventlog.KindSignalEnd:
		c.handled(e.Thread)
		return
	}
	name, category := c.nameOf(e)
	if name == "" {
		return
	}
	x := chromeEvent{Name: name, Category: category, Phase: "X", Time: c.now, Duration: 1, TID: e.Thread, Args: map[string]any{"event": e.Ordinal, "result": e.Result}}
	if since, waited := c.arrived(e); waited {
		x.Time, x.Duration = since, c.now+1-since
		x.Args["waited"] = true
	}
	c.addEvent(x)
}

// nameOf returns what an event is; empty for events that readers do not look for.
func (c *chromeTrace) nameOf(e *eventlog.Event) (name, category string) {
	switch e.Kind {
	case eventlog.KindSyscall:
		return eventlog.SyscallName(e.Object), "call"
	case eventlog.KindMutex, eventlog.KindRWLock, eventlog.KindSpin, eventlog.KindCond, eventlog.KindSem, eventlog.KindBarrier, eventlog.KindOnce, eventlog.KindGuard:
		object := c.names[evidence.Addr(e.Object)]
		if object == "" {
			object = evidence.Addr(e.Object).String()
		}
		return e.Kind.String() + " " + object, "lock"
	case eventlog.KindJoin, eventlog.KindCreate, eventlog.KindFork, eventlog.KindExec:
		return e.Kind.String(), "call"
	}
	return "", ""
}

// arrived returns when the thread of an event began to wait for it.
func (c *chromeTrace) arrived(e *eventlog.Event) (float64, bool) {
	if e.Flags&eventlog.FlagArrived == 0 || len(e.Args) == 0 {
		return 0, false
	}
	ticket := e.Args[len(e.Args)-1]
	i := sort.Search(len(c.tickets), func(i int) bool { return c.tickets[i] >= ticket })
	if i == len(c.tickets) || c.times[i] >= c.now {
		return 0, false
	}
	return c.times[i], true
}

func (c *chromeTrace) handled(thread uint32) {
	list := c.handlers[thread]
	if len(list) == 0 {
		return // it began before the part that is shown
	}
	x := list[len(list)-1]
	c.handlers[thread] = list[:len(list)-1]
	x.Phase, x.TID, x.Duration = "X", thread, c.now-x.Time
	c.addEvent(x)
}

// ends adds the handlers that did not return, and the least time that each lock was held. A release
// is no event, so a lock may have been held for longer.
func (c *chromeTrace) ends() {
	c.now++
	for _, thread := range slices.Sorted(maps.Keys(c.handlers)) {
		for range c.handlers[thread] {
			c.handled(thread)
		}
	}
	for i := range c.report.log.Acquisitions {
		a := &c.report.log.Acquisitions[i]
		since, known := c.taken[lockHolder{a.Thread, a.Ordinal}]
		if !a.Waiting || !known {
			continue
		}
		c.addEvent(chromeEvent{Name: "waits for " + lockName(&a.Lock), Category: "lock", Phase: "X", Time: since + 1, Duration: c.now - since, TID: a.Thread,
			Args: map[string]any{"waited": true, "event": a.Ordinal}})
	}
	keys := slices.SortedFunc(maps.Keys(c.held), func(a, b lockHold) int {
		return cmp.Or(cmp.Compare(c.held[a].from, c.held[b].from), cmp.Compare(a.thread, b.thread), cmp.Compare(a.lock, b.lock))
	})
	for n, k := range keys {
		h := c.held[k]
		x := chromeEvent{Name: fmt.Sprintf("%s held by thread %d", c.names[k.lock], k.thread), Category: "held " + c.names[k.lock], Phase: "b",
			Time: h.from, TID: k.thread, ID: fmt.Sprintf("%d", n+1), Args: map[string]any{"at_least": true}}
		c.addEvent(x)
		x.Phase, x.Time, x.Args = "e", h.to, nil
		c.addEvent(x)
	}
}
