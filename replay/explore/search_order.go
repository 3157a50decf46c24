package explore

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// logged is the part of an event that a search needs.
type logged struct {
	thread  uint32
	ordinal uint64
	kind    eventlog.Kind
	flags   eventlog.EventFlags
	object  uint64
	taken   bool // a lock, by this event
	real    bool // glibc's own function made it
	site    evidence.Addr
}

// order is the events of a log in the global order. The position of an event is the number of
// events up to it.
type order struct {
	events []logged
	of     map[uint32][]uint64 // positions by thread and ordinal
}

func readOrder(l *eventlog.Log) (*order, error) {
	o := &order{of: map[uint32][]uint64{}}
	for e, err := range l.Ordered() {
		if err != nil && len(o.events) > 0 {
			break // a replay gets as far
		}
		if err != nil {
			return nil, fmt.Errorf("explore: %w", err)
		}
		real := e.Kind >= eventlog.KindMutex && e.Kind <= eventlog.KindGuard && len(e.Args) > 0 && e.Args[0] == uint64(eventlog.SyncReal)
		taken := e.Result == 0 && e.Flags&eventlog.FlagInterrupted == 0 && (e.Kind == eventlog.KindMutex || e.Kind == eventlog.KindSpin)
		o.events = append(o.events, logged{e.Thread, e.Ordinal, e.Kind, e.Flags, e.Object, taken, real, e.Site})
		o.of[e.Thread] = append(o.of[e.Thread], uint64(len(o.events)))
	}
	return o, nil
}

func (o *order) total() uint64 { return uint64(len(o.events)) }

// position returns the position of a thread's event; 0: the thread has no such event.
func (o *order) position(thread uint32, ordinal uint64) uint64 {
	if list := o.of[thread]; ordinal > 0 && ordinal <= uint64(len(list)) {
		return list[ordinal-1]
	}
	return 0
}

func (o *order) eventAt(position uint64) *logged { return &o.events[position-1] }

// step is an event of a thread and the code after it.
type step struct {
	thread  uint32
	ordinal uint64
	// begin is the position of the event. end is that of the last event before the thread's
	// next one, up to which the code can be delayed.
	begin, end uint64
}

// step returns the step of a thread's event.
func (o *order) step(thread uint32, ordinal uint64) (step, bool) {
	begin := o.position(thread, ordinal)
	if begin == 0 {
		return step{}, false
	}
	end := o.total()
	if next := o.position(thread, ordinal+1); next != 0 {
		end = next - 1
	}
	return step{thread, ordinal, begin, end}, true
}

// holdable reports whether a thread can be delayed right after an event. It cannot if the
// event's call has not returned: the thread holds a lock of libc or of the heap, or is about to
// make another event.
func (o *order) holdable(s step) bool {
	switch e := o.eventAt(s.begin); e.kind {
	case eventlog.KindOrder, eventlog.KindHeap, eventlog.KindCreate, eventlog.KindExit, eventlog.KindEnd, eventlog.KindExec, eventlog.KindFork:
		return false
	default:
		return !e.real && s.end > s.begin
	}
}

// ends reports whether the step's event is the last of its thread, which nothing follows.
func (o *order) ends(s step) bool {
	kind := o.eventAt(s.begin).kind
	return kind == eventlog.KindExit || kind == eventlog.KindEnd
}

// window is the part in which a search looks for the reason of a divergence: for each thread,
// from its last event before a part of the diverging thread's path to its first event after
// that part (Lee et al., ECOOP 2014, 4.1).
type window struct {
	// own are the steps of the thread that diverged, the last of them first. others are those
	// of all other threads that may have run at the same time, the latest first.
	own, others []step
}

// from is the position at which the window begins.
func (w *window) from() uint64 { return w.own[len(w.own)-1].begin }

func (w *window) to() uint64 { return w.own[0].end }

// threads returns the part of each thread in the window.
func (w *window) threads() map[uint32]replay.StepWindow {
	windows := map[uint32]replay.StepWindow{}
	for _, st := range slices.Concat(w.own, w.others) {
		x, known := windows[st.thread]
		if !known {
			x.From = st.ordinal
		}
		windows[st.thread] = replay.StepWindow{From: min(x.From, st.ordinal), To: max(x.To, st.ordinal)}
	}
	return windows
}

// window returns the window of the last steps of a thread up to the one after an event.
func (o *order) window(thread uint32, ordinal uint64, steps int) *window {
	w := &window{}
	for ; ordinal > 0 && len(w.own) < steps; ordinal-- {
		if s, ok := o.step(thread, ordinal); ok {
			w.own = append(w.own, s)
		}
	}
	if len(w.own) == 0 {
		return nil
	}
	w.others = o.beside(thread, w.from(), w.to())
	return w
}

// beside returns the steps of other threads between two positions, by their events backward.
// The first of each thread may have begun before.
func (o *order) beside(thread uint32, from, to uint64) []step {
	var list []step
	seen := map[uint32]bool{thread: true}
	add := func(position uint64) {
		e := o.eventAt(position)
		if s, ok := o.step(e.thread, e.ordinal); ok && e.thread != thread && e.kind != eventlog.KindExit {
			list = append(list, s)
		}
	}
	at := min(to, o.total())
	for ; at >= from && at > 0; at-- {
		add(at)
	}
	// The step in which each thread was then.
	for left := len(o.of) - 1; at > 0 && left > 0; at-- {
		if e := o.eventAt(at); !seen[e.thread] {
			seen[e.thread] = true
			left--
			add(at)
		}
	}
	return list
}
