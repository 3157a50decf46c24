package debug

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// SignalSet is a set of signals: bit N-1 is signal N.
type SignalSet uint64

// Has reports whether a signal is in the set.
func (s SignalSet) Has(signal int) bool { return signal >= 1 && signal <= 64 && s&(1<<(signal-1)) != 0 }

// With returns the set with one signal more.
func (s SignalSet) With(signal int) SignalSet {
	if signal < 1 || signal > 64 {
		return s
	}
	return s | 1<<(signal-1)
}

// caught is a signal that a handler of the program got.
type caught struct {
	event   evidence.Moment
	number  int
	handler evidence.Addr
	place   eventlog.SignalPlace
	// nested: it came where another handler began, before that one's first instruction.
	nested bool
}

// caughtSignals returns the recorded signals with handlers, by thread, in ascending order.
func (s *Session) caughtSignals() (map[uint32][]caught, error) {
	if s.caught != nil {
		return s.caught, nil
	}
	all := map[uint32][]caught{}
	for _, thread := range s.rec.Log.Threads() {
		list, err := caughtBy(s.rec.Log, thread)
		if err != nil {
			return nil, err
		}
		all[thread] = list
	}
	s.caught = all
	return all, nil
}

func caughtBy(log *eventlog.Log, thread uint32) (list []caught, err error) {
	for e, err := range log.Events(thread) {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Kind != eventlog.KindSignal {
			continue
		}
		h, err := log.HandledBy(e)
		if err != nil {
			return nil, err
		}
		x := caught{event: evidence.Moment{Thread: thread, Ordinal: e.Ordinal}, number: h.Number, handler: h.Handler, place: h.Place}
		if n := len(list); n > 0 && x.place == eventlog.PlaceEvent {
			last := &list[n-1]
			x.nested = h.PC == last.handler && e.Ordinal == last.event.Ordinal+1
		}
		const ignore = 1 // SIG_DFL and SIG_IGN are no handlers
		if x.handler > ignore {
			list = append(list, x)
		}
	}
	return list, nil
}

// signalAt returns the signal that is an event; nil: it is none.
func (s *Session) signalAt(event evidence.Moment) (*caught, error) {
	if event.Thread == 0 {
		return nil, nil
	}
	all, err := s.caughtSignals()
	if err != nil {
		return nil, err
	}
	list := all[event.Thread]
	i, found := slices.BinarySearchFunc(list, event.Ordinal, func(x caught, ordinal uint64) int { return cmp.Compare(x.event.Ordinal, ordinal) })
	if !found {
		return nil, nil
	}
	return &list[i], nil
}

// signalEvents returns the events of recorded signals that stop the program. Of signals at one place that is the first.
func (s *Session) signalEvents(of SignalSet) ([]evidence.Moment, error) {
	if of == 0 {
		return nil, nil
	}
	all, err := s.caughtSignals()
	var events []evidence.Moment
	for _, list := range all {
		for i := range list {
			if x := &list[i]; of.Has(x.number) && !x.nested {
				events = append(events, x.event)
			}
		}
	}
	return events, err
}

// stopAtSignals makes the session's replay stop at signals that are still to come.
func (s *Session) stopAtSignals(of SignalSet) error {
	if s.live.signals == of {
		return nil
	}
	events, err := s.signalEvents(of)
	if err != nil {
		return err
	}
	if err := s.live.do(func(d *replay.DebugStop) error { return d.StopAtEvents(events) }); err != nil {
		return err
	}
	s.live.signals = of
	return nil
}

// Signal returns the signal whose handler is to begin at the position; 0: none is. The program's registers and memory are
// those of the interrupted instruction.
func (s *Session) Signal() (int, error) {
	if !s.at.AtSignal() {
		return 0, nil
	}
	x, err := s.signal()
	if err != nil {
		return 0, err
	}
	return x.number, nil
}

// signal returns the signal of a position that is at one.
func (s *Session) signal() (*caught, error) {
	x, err := s.signalAt(s.at.Event)
	if err == nil && x == nil {
		err = fmt.Errorf("debug: event %d of thread %d is no signal", s.at.Event.Ordinal, s.at.Event.Thread)
	}
	return x, err
}

// backFromSignal goes from a signal to the instruction before it.
func (s *Session) backFromSignal() (Stop, error) {
	x, err := s.signal()
	if err != nil {
		return s.stop, err
	}
	next := x.event // at the end of a call, which is the instruction before it
	if x.place != eventlog.PlaceEvent {
		next = evidence.Moment{Thread: x.event.Thread, Ordinal: x.event.Ordinal - 1, PC: evidence.Addr(s.stop.PC)}
		if next.Count, err = s.arrivalsBefore(next, x.event); err != nil {
			return s.stop, err
		}
	}
	to, err := s.before(next)
	if err != nil {
		return s.stop, err
	}
	return s.stop, s.Go(to)
}

// arrivalsBefore returns how often a thread arrives at an instruction between two of its events that follow each other, the second
// of which is a signal.
func (s *Session) arrivalsBefore(m, signal evidence.Moment) (uint64, error) {
	after := evidence.Moment{Thread: m.Thread, Ordinal: m.Ordinal}
	fast := &route{to: Position{End: true, Event: after}, tally: []replay.Arrivals{{PC: m.PC}}, signals: map[evidence.Moment]bool{signal: true}}
	l, stop, err := s.travel(fast)
	if err != nil {
		return 0, err
	}
	l.close()
	if fast.tallied != nil && stop.Thread == signal.Thread && stop.Ordinal == signal.Ordinal {
		return fast.tallied[0], nil
	}
	slow := &route{to: Position{Event: signal, Signal: true}, counts: m, slow: true}
	if l, _, err = s.travel(slow); err != nil {
		return 0, err
	}
	l.close()
	return slow.counts.Count, nil
}
