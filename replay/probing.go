package replay

import (
	"errors"
	"fmt"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
	"diagnose/replay/tracepoint"
)

// probing is the part of the controller for a ProbeRequest.
type probing struct {
	c       *controller
	request *Probing
	points  *tracepoint.Tracepoints
	// arrivals counts the stops, handled the arrivals that rules have handled; counts has those of each thread at each pc since its last event.
	arrivals, handled uint64
	counts            map[uint32]*arrivalCounts
	// allStopped: no thread runs while the entries of rules are reported.
	allStopped bool
	// asked are the arrivals that took no stop. asking: the tool is on another processor than the process, and answers questions.
	// copies: hits make copies of the process.
	asked          uint64
	asking, copies bool
	// loads counts the requests of the engine that report loaded objects.
	loads int
}

// arrivalCounts counts the arrivals of a thread since an event.
type arrivalCounts struct {
	ordinal uint64
	at      map[uint64]uint64 // by pc
}

func newProbing(c *controller, asked *Probing) *probing {
	if asked.Begin != nil {
		asked.Begin()
	}
	return &probing{c: c, request: asked, counts: map[uint32]*arrivalCounts{}}
}

// install puts the tracepoints at instructions whose objects are loaded now.
func (p *probing) install(t *tracee.Thread, s *tracee.SignalStop) error {
	if p == nil || !p.c.IsLast() {
		return nil
	}
	if p.points == nil {
		p.c.Pin() // a stop costs half as much on one processor
		p.points = tracepoint.New(p.c.Process, p.c.Stage(), p.c.placer, p, p.request.At, p.request.Files, p.request.Rules, p.request.Asks)
		p.c.watch.handled.Store(p.points)
	}
	p.loads++
	p.c.watch.pause() // it may take long
	defer p.c.watch.resume()
	if err := p.points.Install(t); err != nil {
		return err
	}
	p.chooseWay()
	regs, err := ptrace.GetRegisters(t.TID)
	s.Regs.Gs_base = regs.Gs_base
	return err
}

// arm prepares a new thread, before its first instruction.
func (p *probing) arm(t *tracee.Thread) error {
	if p == nil {
		return nil
	}
	return p.points.Arm(t)
}

// drain reports the arrivals so far, with all threads stopped: none of them is a part of what follows.
func (p *probing) drain() error {
	if p == nil {
		return nil
	}
	p.allStopped = true
	defer func() { p.allStopped = false }()
	return p.points.Drain()
}

// close frees memory.
func (p *probing) close() {
	if p != nil {
		p.points.Close()
	}
}

// Logged implements tracepoint.Replay.
func (p *probing) Logged(e *tracepoint.Entry, t *tracee.Thread) error {
	s := &Stopped{c: p.c, thread: t, alone: !p.allStopped}
	defer s.close()
	err := p.request.OnLogged(s, e)
	if !errors.Is(err, ErrEnough) || t == nil {
		return err
	}
	return p.enough(t)
}

// enough ends the replay at a thread.
func (p *probing) enough(t *tracee.Thread) error {
	if err := p.c.StopAll(); err != nil {
		return err
	}
	p.c.end = &end{kind: EndMoment, thread: t}
	return nil
}

// Counted implements tracepoint.Replay.
func (p *probing) Counted(pc evidence.Addr, thread uint32, arrivals uint64) {
	p.handled += arrivals
	p.request.OnCounted(pc, thread, arrivals)
}

// Room implements tracepoint.Replay.
func (p *probing) Room() uint64 {
	if p.request.Room == nil {
		return ^uint64(0)
	}
	return max(p.request.Room(), 1)
}

func (p *probing) handleSignal(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	if p == nil {
		return false, nil
	}
	return p.points.HandleSignal(t, s)
}

func (p *probing) original(regs *ptrace.Registers) {
	if p != nil {
		p.points.Original(regs)
	}
}

// finish restores the program's text and fills in the result.
func (p *probing) finish(r *Result) error {
	if p == nil {
		return nil
	}
	if err := errors.Join(p.drain(), p.points.Finish()); err != nil {
		return err
	}
	r.Arrivals, r.Handled, r.Asked, r.Ruled = p.arrivals+p.handled, p.handled, p.asked, p.points.Ruled()
	r.Moved, r.Trapped, r.Unreachable = p.points.Installed()
	if p.points == nil {
		r.Unreachable = p.request.At
	}
	return nil
}

// Stopped counts the arrivals at which a thread was stopped.
func (r *Result) Stopped() uint64 { return r.Arrivals - r.Handled - r.Asked }

// Over implements tracepoint.Replay.
func (p *probing) Over() bool { return p.c.end != nil }

// Resume implements tracepoint.Replay.
func (p *probing) Resume(t *tracee.Thread) error { return p.c.resume(t) }

// HandleStop implements tracepoint.Replay.
func (p *probing) HandleStop(stop ptrace.Stop) error {
	if !p.c.allStopped {
		return p.c.handle(stop)
	}
	t := p.c.Threads[stop.TID]
	if t == nil {
		return p.c.handle(stop)
	}
	t.Stopped, t.Deferred = true, &stop
	return p.c.resume(t)
}

// Arrived implements tracepoint.Replay.
func (p *probing) Arrived(t *tracee.Thread, regs *ptrace.Registers) error {
	if p.asking && !p.points.Asks() { // a stop was needed at an instruction, so there are more
		p.chooseWay()
	}
	a := p.arrival(t, regs)
	defer p.c.watch.resume()
	defer a.close()
	if err := p.locate(a, t); err != nil {
		return err
	}
	return p.onArrival(a)
}

// Asked implements tracepoint.Replay.
func (p *probing) Asked(q *tracepoint.Question) error {
	c := p.c
	t := c.Threads[q.TID]
	if t == nil {
		return fmt.Errorf("replay: a question of thread %d, which the process does not have", q.TID)
	}
	if err := c.Identify(t); err != nil {
		return err
	}
	p.asked++
	a := p.arrival(t, &q.Registers)
	defer c.watch.resume()
	defer a.close()
	a.question = q
	a.Moment.Thread, a.Moment.Ordinal, a.Moment.Count = q.Thread, q.Ordinal, q.Count
	if err := p.onArrival(a); err != nil {
		return err
	}
	if c.end != nil {
		return q.Settle()
	}
	if c.allStopped {
		c.allStopped = false
		return c.goOn()
	}
	return nil
}

// arrival counts an arrival. The watchdog pauses meanwhile.
func (p *probing) arrival(t *tracee.Thread, regs *ptrace.Registers) *Arrival {
	c := p.c
	c.watch.hits.Add(1)
	c.watch.pause()
	p.arrivals++
	a := &Arrival{Stopped: &Stopped{c: c, thread: t, regs: regs, alone: true}}
	a.Moment.PC = evidence.Addr(regs.Rip)
	return a
}

func (p *probing) onArrival(a *Arrival) error {
	if p.request.OnArrival == nil {
		return nil
	}
	err := p.request.OnArrival(a)
	if errors.Is(err, ErrEnough) {
		return p.enough(a.thread)
	}
	return err
}

// copied notes that a copy of the process is made of a thread that asks. A copy takes all threads to be stopped, and takes less time on
// one processor.
func (p *probing) copied() {
	p.copies = true
	p.chooseWay()
}

// chooseWay has threads ask where that is possible at all instructions.
func (p *probing) chooseWay() {
	switch asks := p.points.Asks() && !p.copies; {
	case asks == p.asking:
	case asks:
		p.asking = p.c.PinApart()
	default:
		p.asking = false
		p.points.SetAnswers(false)
		p.c.PinTogether()
	}
}

// askTime is how long the tool looks for questions after the last one, or after a stop, before it sleeps: then threads stop.
const askTime = 200 * time.Microsecond

// next waits for a stop, and answers questions meanwhile. found is false if there was only a question, after which the replay may be over.
func (p *probing) next() (stop ptrace.Stop, found bool, err error) {
	if p == nil || !p.asking {
		stop, err = ptrace.Wait()
		return stop, true, err
	}
	p.points.SetAnswers(true)
	const looks = 1000 // of some nanoseconds, between two looks for a stop: a program that asks often does so within that time
	for until := time.Now().Add(askTime); ; {
		for range looks {
			if p.points.HasQuestion() {
				return stop, false, p.answer()
			}
		}
		if stop, found, err = ptrace.Poll(); found || err != nil {
			return stop, found, err
		}
		if time.Now().After(until) {
			p.points.SetAnswers(false)
			stop, err = ptrace.Wait()
			return stop, true, err
		}
	}
}

func (p *probing) answer() error {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.points.Answer()
}

// locate fills in where the thread is. Before its first event a thread has no number.
func (p *probing) locate(a *Arrival, t *tracee.Thread) error {
	if err := p.c.Identify(t); errors.Is(err, tracee.ErrNoThread) {
		return nil
	} else if err != nil {
		return err
	}
	r, err := p.c.ReadThread(t.Index)
	if err != nil {
		return err
	}
	a.Moment.Thread, a.Moment.Ordinal = t.Index, r.Ordinal
	if count, counted := p.points.Count(t, a.Moment.PC, r.Ordinal); counted {
		a.Moment.Count = count
		return nil
	}
	n := p.counts[t.Index]
	if n == nil || n.ordinal != r.Ordinal {
		n = &arrivalCounts{ordinal: r.Ordinal, at: map[uint64]uint64{}}
		p.counts[t.Index] = n
	}
	n.at[a.regs.Rip]++
	a.Moment.Count = n.at[a.regs.Rip]
	return nil
}

// AddPoint has threads stop at one more instruction from now on. It reports whether that is
// possible.
func (a *Arrival) AddPoint(pc evidence.Addr) (bool, error) { return a.c.probing.points.Add(pc) }

// Number returns the number of an arrival at an instruction whose arrivals are numbered (Rule.Numbered).
func (a *Arrival) Number() uint64 { return a.c.probing.points.Number() }

// Loads counts how often objects may have been loaded so far in a ProbeRequest: an image of the
// process that was opened with another count may lack some.
func (s *Stopped) Loads() int {
	if s.c.probing == nil {
		return 0
	}
	return s.c.probing.loads
}

// KeepProcess is Process, but the caller closes it. Its memory stays that of the replayed process,
// its threads and mappings those of now.
func (s *Stopped) KeepProcess() (*image.Process, error) {
	p, err := s.Process()
	s.process = nil
	return p, err
}

// Position is the number of events that all threads have done.
func (s *Stopped) Position() (uint64, error) {
	if s.question != nil {
		return s.question.Position, nil
	}
	control, err := s.c.ReadControl()
	if err != nil {
		return 0, err
	}
	return control.Consumed, nil
}
