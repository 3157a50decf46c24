package debug

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
)

// Session is a position in a recording, with a replay that is stopped there.
type Session struct {
	ctx    context.Context
	rec    *record.Recording
	common replay.Common
	live   *live
	at     Position
	stop   Stop
	first  evidence.Moment
	// last is the last event of the thread with which the recording ends.
	last evidence.Moment
	// events is the number of events of all threads.
	events uint64
	marks  marks
	// caught are the recorded signals with handlers, by thread; nil: they were not read yet.
	caught map[uint32][]caught

	way way
	// left is the copy that has left the recording; nil: none has.
	left atomic.Pointer[Left]

	mu sync.Mutex
	// moving is the replay on its way, for Interrupt; under: a way by other replays is. interrupted: it is given up.
	moving      *live
	under       bool
	interrupted bool
	// calling ends a run of the copy; nil: it does not run.
	calling func()
}

// Halts are the places where a session stops on its way.
type Halts struct {
	Breakpoints []evidence.Addr
	Watches     []replay.Watch
	// Signals stop the program before their handlers.
	Signals SignalSet
}

func (h *Halts) plan() replay.DebugPlan {
	return replay.DebugPlan{Breakpoints: h.Breakpoints, Watches: h.Watches}
}

// The ends of the ways.
var (
	// ErrEnd: the recording has nothing after the position.
	ErrEnd = errors.New("debug: the end of the recording")
	// ErrBegin: the recording has nothing before the position.
	ErrBegin = errors.New("debug: the beginning of the recording")
	// ErrInterrupted: Interrupt was called; the position is as before.
	ErrInterrupted = errors.New("debug: interrupted")
)

// Open starts a session at the end of a recording.
func Open(ctx context.Context, rec *record.Recording, common replay.Common) (*Session, error) {
	schedule, err := rec.Log.Schedule()
	if err != nil {
		return nil, err
	}
	if len(schedule) == 0 {
		return nil, errors.New("debug: the recording has no events")
	}
	s := &Session{ctx: ctx, rec: rec, common: common, first: evidence.Moment{Thread: schedule[0].Thread, Ordinal: 1},
		marks: marks{after: markAfter}}
	s.way.every = tellEvery
	failing, counts := rec.Manifest.Outcome.Thread, schedule.Events()
	s.last = evidence.Moment{Thread: failing, Ordinal: counts[failing]}
	for _, n := range counts {
		s.events += n
	}
	return s, s.Go(Position{End: true})
}

// Close ends the session.
func (s *Session) Close() {
	s.live.close()
	s.marks.close()
}

// Position is where the session is.
func (s *Session) Position() Position { return s.at }

// Stop is why it stopped there, or where the process has stopped that has left the recording.
func (s *Session) Stop() Stop {
	if l := s.Left(); l != nil {
		return l.stop
	}
	return s.stop
}

// Do calls a function with the stopped process.
func (s *Session) Do(call func(*replay.DebugStop) error) error { return s.live.do(call) }

// Interrupt stops the way that another goroutine is on, as soon as possible.
func (s *Session) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calling != nil:
		s.calling()
	case s.moving != nil && s.moving == s.live:
		s.moving.interrupt.Ask()
	case s.moving != nil:
		s.interrupted = true
		s.moving.cancel()
	case s.under: // between two replays
		s.interrupted = true
	}
}

// move waits for a stop of a replay, which Interrupt may interrupt.
func (s *Session) move(l *live) (Stop, error) {
	s.mu.Lock()
	s.moving = l
	if s.interrupted {
		l.cancel()
	}
	s.mu.Unlock()
	stop, err := s.way.wait(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving = nil
	if s.interrupted {
		s.interrupted = false
		return stop, ErrInterrupted
	}
	return stop, err
}

// proceed lets a stopped replay continue to its next stop.
func (s *Session) proceed(l *live, plan replay.DebugPlan) (Stop, error) {
	select {
	case l.plans <- plan:
		return s.move(l)
	case <-l.ended:
		return Stop{}, errors.Join(errEnded, l.err)
	}
}

// travel makes a replay that follows a route. The caller ends it.
func (s *Session) travel(r *route) (*live, Stop, error) {
	r.marks, r.last = &s.marks, s.last
	if x, err := s.signalAt(r.to.Event); err != nil {
		return nil, Stop{}, err
	} else if x != nil {
		r.handler = x.handler
	}
	again := *r
	l, stop, err := s.attempt(r)
	if errors.Is(err, errStages) {
		l.close()
		again.single = true
		*r = again
		l, stop, err = s.attempt(r)
	}
	if errors.Is(err, errTurns) {
		l.close()
		again.slow = true
		*r = again
		r.counts.Count = 0
		l, stop, err = s.attempt(r)
	}
	if err == nil && stop.Kind == replay.StopEnd && !r.to.End {
		err = fmt.Errorf("debug: the replay ended (%s) before the position", stop.End)
	}
	if err != nil {
		l.close()
		return nil, stop, err
	}
	return l, stop, nil
}

// attempt makes one replay for travel, from the nearest mark.
func (s *Session) attempt(r *route) (*live, Stop, error) {
	again := *r
	from := r.from
	if !r.chosen {
		from = s.marks.best(r)
		r.from = from
	}
	l := start(s.ctx, s.rec, s.common, r)
	stop, err := s.move(l)
	if err == nil || from == nil || errors.Is(err, errStages) || errors.Is(err, errTurns) || errors.Is(err, ErrInterrupted) || s.ctx.Err() != nil {
		return l, stop, err
	}
	if r.chosen {
		return l, stop, err
	}
	// What the checkpoints lack the whole replay may have.
	l.close()
	s.marks.close()
	*r = again
	l = start(s.ctx, s.rec, s.common, r)
	stop, err = s.move(l)
	return l, stop, err
}

// Go goes to a position.
func (s *Session) Go(to Position) error {
	defer s.begin("going there")()
	l, stop, err := s.travel(&route{to: to})
	if err != nil {
		return err
	}
	s.settle(l, to, stop)
	return nil
}

// settle makes a replay that has reached a position the session's.
func (s *Session) settle(l *live, at Position, stop Stop) {
	old := s.live
	s.live, s.at, s.stop = l, at, stop
	s.left.Store(nil)
	old.close()
}

// Begin is the position of the first instruction of the program that the recording has.
func (s *Session) Begin() Position { return PositionOf(s.first) }

// Forward continues to the next halt, or to the next instruction of a thread (0: of none).
func (s *Session) Forward(h Halts, step uint32) (Stop, error) {
	if s.Left() != nil {
		return s.stop, ErrLeft
	}
	if s.at.End {
		return s.stop, ErrEnd
	}
	if err := s.stopAtSignals(h.Signals); err != nil {
		return s.stop, err
	}
	plan := h.plan()
	plan.Step = step
	if s.at.AtSignal() && step == s.at.Event.Thread {
		x, err := s.signal()
		if err != nil {
			return s.stop, err
		}
		plan.Handler = x.handler
	}
	from := s.stop
	stop, err := s.proceed(s.live, plan)
	if err != nil {
		return s.stop, err
	}
	s.stop, s.at = stop, s.at.after(from, stop)
	return stop, nil
}

// after is the position after a stop of the replay that continued from here.
func (p *Position) after(from, stop Stop) Position {
	event := Position{Event: evidence.Moment{Thread: stop.Thread, Ordinal: stop.Ordinal}}
	pc := evidence.Addr(stop.PC)
	switch stop.Kind {
	case replay.StopEnd:
		return Position{End: true}
	case replay.StopEvent:
		event.Signal = true
		return event
	case replay.StopStep:
		if stop.Thread == from.Thread && stop.Ordinal != from.Ordinal {
			return event
		}
		return p.Steps(stop.Thread, 1)
	case replay.StopBreakpoint:
		if stop.sinceEvent {
			event.Legs = []Leg{{Kind: LegMoment, Thread: stop.Thread, PC: pc, Count: stop.arrivals}}
			return event
		}
		return p.then(Leg{Kind: LegArrivals, PC: pc, Count: 1}, evidence.Addr(from.PC))
	case replay.StopWatch:
		return p.then(Leg{Kind: LegAccesses, Watch: stop.Watch, Count: 1}, evidence.Addr(from.PC))
	default:
		return p.then(Leg{Kind: LegState, Thread: stop.Thread, PC: pc, State: stop.state, Count: 1}, evidence.Addr(from.PC))
	}
}

// Backward continues backwards to the last halt before the position: the process stops before the instruction that
// has the breakpoint, or that made the access, or at the signal. ErrBegin: there is none, and the session is at the beginning.
func (s *Session) Backward(h Halts) (Stop, error) {
	if s.Left() != nil {
		return s.stop, ErrLeft
	}
	defer s.begin("looking for the last stop before here")()
	r := &search{s: s, halts: h}
	if err := r.run(); err != nil {
		return s.stop, err
	}
	if r.last == nil {
		if err := s.Go(s.Begin()); err != nil {
			return s.stop, err
		}
		return s.stop, ErrBegin
	}
	s.way.doing = "going to the last stop before here"
	last := r.last
	to, err := r.target()
	if err != nil {
		return s.stop, err
	}
	if err := s.Go(to); err != nil {
		return s.stop, err
	}
	s.stop.Kind, s.stop.Watch = last.Kind, last.Watch
	return s.stop, nil
}

// Write is a store to words of memory.
type Write struct {
	// Before is the instruction that made it, which is next there.
	Before evidence.Moment
	// ChangedSince: the words are others at the session's position than right after the store.
	ChangedSince bool
}

// LastWrite returns the last store to words before the position. The session stays where it is. ErrBegin: there is none.
// Stores of the kernel are not seen. The error is a *replay.UnsupportedError where the machine cannot stop at accesses.
func (s *Session) LastWrite(words []replay.Watch) (*Write, error) {
	if s.Left() != nil {
		return nil, ErrLeft
	}
	defer s.begin("looking for the last store before here")()
	r := &search{s: s, halts: Halts{Watches: words}}
	if err := r.run(); err != nil {
		return nil, err
	}
	if r.last == nil {
		return nil, ErrBegin
	}
	now, err := s.read(words)
	if err != nil {
		return nil, err
	}
	s.way.doing = "going to the last store before here"
	before, err := r.target()
	if err != nil {
		return nil, err
	}
	l, stop, err := s.travel(&route{to: before})
	if err != nil {
		return nil, err
	}
	l.close()
	m, err := s.absolute(before, &stop)
	if err != nil {
		return nil, err
	}
	return &Write{Before: m, ChangedSince: !bytes.Equal(now, r.contents)}, nil
}

// read reads words where the session is. One that is not mapped is left out.
func (s *Session) read(words []replay.Watch) (contents []byte, err error) {
	err = s.Do(func(d *replay.DebugStop) error {
		contents = readWords(d, words)
		return nil
	})
	return contents, err
}

func readWords(d *replay.DebugStop, words []replay.Watch) (contents []byte) {
	for _, w := range words {
		b := make([]byte, w.Size)
		if _, err := d.ReadMemory(w.Addr, b); err == nil {
			contents = append(contents, b...)
		}
	}
	return contents
}

// absolute returns the Moment of a position where a thread's stop is known.
func (s *Session) absolute(p Position, stop *Stop) (evidence.Moment, error) {
	if m, is := p.Moment(); is && m.PC != 0 {
		return m, nil
	}
	r := &route{to: p, counts: evidence.Moment{Thread: stop.Thread, Ordinal: stop.Ordinal, PC: evidence.Addr(stop.PC)}}
	l, there, err := s.travel(r)
	if err != nil {
		return evidence.Moment{}, err
	}
	l.close()
	if there.PC != stop.PC || there.Thread != stop.Thread || there.Ordinal != stop.Ordinal {
		return evidence.Moment{}, fmt.Errorf("debug: thread %d is at %#x after event %d, and was at %#x after event %d of thread %d before",
			there.Thread, there.PC, there.Ordinal, stop.PC, stop.Ordinal, stop.Thread)
	}
	return r.counts, nil
}

// Moment returns the position as a Moment of the thread that it stopped for. At the end of the recording the count is
// that of the arrivals since the event, too.
// At a signal it is that event.
func (s *Session) Moment() (evidence.Moment, error) {
	if s.at.AtSignal() {
		return s.at.Event, nil
	}
	return s.absolute(s.at, &s.stop)
}
