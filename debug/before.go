package debug

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay"
)

// BackStep goes one instruction of a thread back.
func (s *Session) BackStep(thread uint32) (Stop, error) {
	if s.Left() != nil {
		return s.stop, ErrLeft
	}
	defer s.begin("looking for the instruction before")()
	if to, known := s.at.back(thread); known {
		err := s.Go(to)
		return s.stop, err
	}
	stop := s.stop
	if s.at.AtSignal() && thread == stop.Thread {
		return s.backFromSignal()
	}
	if thread != stop.Thread {
		return s.stop, fmt.Errorf("debug: only thread %d, which the program stopped for, can be stepped backwards here", stop.Thread)
	}
	m, err := s.Moment()
	if err != nil {
		return s.stop, err
	}
	if s.at.End && m.Count == 0 {
		m.Count = 1
	}
	to, err := s.before(m)
	if err != nil {
		return s.stop, err
	}
	return s.stop, s.Go(to)
}

const (
	// fewSteps is how many instructions are stepped from an event or from the arrival before; mostSteps from an
	// instruction that is known to be near.
	fewSteps  = 5_000
	mostSteps = 100_000
)

// before returns the position of the instruction that a thread executed before it arrived at a Moment, which has a PC or is a
// signal at the end of a call.
func (s *Session) before(m evidence.Moment) (Position, error) {
	from := m
	if m.PC == 0 {
		from.Ordinal--
	}
	for ; ; from.Ordinal-- {
		if from.Ordinal == 0 || from.Ordinal < s.first.Ordinal {
			return Position{}, ErrBegin
		}
		anchor := Position{Event: evidence.Moment{Thread: m.Thread, Ordinal: from.Ordinal}}
		if from.Ordinal == m.Ordinal && m.Count > 1 {
			anchor = PositionOf(evidence.Moment{Thread: m.Thread, Ordinal: m.Ordinal, PC: m.PC, Count: m.Count - 1})
		}
		to, steps, err := s.stepUpTo(anchor, m, fewSteps)
		if err != nil {
			return Position{}, err
		}
		if steps > 0 {
			return to, nil
		}
	}
}

// stepUpTo steps the Moment's thread from an anchor before it to the Moment. It returns the position before the last of
// these steps, and their number; 0: the anchor is the Moment.
func (s *Session) stepUpTo(anchor Position, m evidence.Moment, most int) (Position, int, error) {
	r := &route{to: anchor}
	if m.PC == 0 {
		r.signals = map[evidence.Moment]bool{m: true}
	}
	l, stop, err := s.travel(r)
	if err != nil {
		return Position{}, 0, err
	}
	defer l.close()
	isThere := func() bool {
		at := stop.PC == uint64(m.PC) || m.PC == 0 && stop.Kind == replay.StopEvent
		return at && stop.Thread == m.Thread && stop.Ordinal == m.Ordinal
	}
	if stop.Ordinal > m.Ordinal || len(anchor.Legs) == 0 && isThere() {
		return Position{}, 0, nil
	}
	at := anchor
	for n := 1; n <= most; n++ {
		from := stop
		if stop, err = s.proceed(l, replay.DebugPlan{Step: m.Thread}); err != nil {
			return Position{}, 0, err
		}
		if stop.Kind == replay.StopEnd || isThere() {
			return at, n, nil
		}
		at = at.after(from, stop)
	}
	if most > fewSteps {
		return Position{}, 0, fmt.Errorf("debug: the instruction before is more than %d instructions after any that is known", most)
	}
	if m.PC == 0 {
		return Position{}, 0, fmt.Errorf("debug: the call that ends with the signal is more than %d instructions after an event", most)
	}
	candidates, err := s.predecessors(l, m)
	if err != nil {
		return Position{}, 0, err
	}
	near, err := s.lastOf(candidates, m)
	if err == nil && near.Event.Thread == 0 {
		near, err = s.near(l, at, m, candidates)
	}
	if err != nil {
		return Position{}, 0, err
	}
	return s.stepUpTo(near, m, mostSteps)
}

// predecessors returns instructions that may be executed right before a Moment.
func (s *Session) predecessors(l *live, m evidence.Moment) (candidates []evidence.Addr, err error) {
	err = l.do(func(d *replay.DebugStop) error {
		candidates, err = predecessors(d, m)
		return err
	})
	if err == nil && len(candidates) == 0 {
		err = fmt.Errorf("debug: no instruction is known that leads to %v", m.PC)
	}
	return candidates, err
}

// lastOf returns the last arrival before a Moment at the candidate that was arrived at most often since the event. The arrivals are
// counted at full speed; where that is not possible, or there is none, the position is the zero value.
func (s *Session) lastOf(candidates []evidence.Addr, m evidence.Moment) (Position, error) {
	r := &route{to: Position{End: true, Event: evidence.Moment{Thread: m.Thread, Ordinal: m.Ordinal}}}
	r.tally = []replay.Arrivals{{PC: m.PC, Count: max(m.Count, 1)}}
	for _, pc := range candidates {
		if pc != m.PC {
			r.tally = append(r.tally, replay.Arrivals{PC: pc})
		}
	}
	l, stop, err := s.travel(r)
	if err != nil {
		return Position{}, err
	}
	l.close()
	if r.tallied == nil || stop.Thread != m.Thread || stop.Ordinal != m.Ordinal {
		return Position{}, nil
	}
	var most Position
	count := uint64(0)
	for i, n := range r.tallied[1:] {
		if n > count {
			count = n
			most = PositionOf(evidence.Moment{Thread: m.Thread, Ordinal: m.Ordinal, PC: r.tally[i+1].PC, Count: n})
		}
	}
	return most, nil
}

// near returns the position of an instruction near before a Moment's, after a position that l is at. It is one of the
// same function, or the call of that function.
func (s *Session) near(l *live, at Position, m evidence.Moment, candidates []evidence.Addr) (Position, error) {
	var err error
	var last Position
	plan := replay.DebugPlan{Breakpoints: candidates}
	plan.Until = replay.Arrivals{Thread: m.Thread, PC: m.PC, Count: 1}
	stop := Stop{}
	for {
		from := stop
		if stop, err = s.proceed(l, plan); err != nil {
			return Position{}, err
		}
		if stop.Kind == replay.StopEnd || stop.Kind == replay.StopUntil && stop.Ordinal == m.Ordinal {
			break
		}
		if at = at.after(from, stop); stop.Thread == m.Thread {
			last = at
		}
	}
	if last.Event.Thread == 0 {
		return Position{}, fmt.Errorf("debug: no instruction is known that leads to %v", m.PC)
	}
	return last, nil
}

// predecessors returns instructions of the function of a Moment that may be executed right before it.
func predecessors(d *replay.DebugStop, m evidence.Moment) ([]evidence.Addr, error) {
	p, err := d.Process()
	if err != nil {
		return nil, err
	}
	symbol, found := p.SymbolAt(m.PC)
	const longest = 1 << 20
	if !found || symbol.Size == 0 || symbol.Size > longest {
		return nil, fmt.Errorf("debug: the function at %v is not known", m.PC)
	}
	code := make([]byte, symbol.Size)
	if _, err := p.ReadMemory(symbol.Addr, code); err != nil {
		return nil, err
	}
	insts, undecodable := x86.Function(code, uint64(symbol.Addr))
	if undecodable > 0 {
		return nil, fmt.Errorf("debug: not all instructions of the function at %v are known", m.PC)
	}
	var list []evidence.Addr
	for i := range insts {
		x := &insts[i]
		after := x.PC + uint64(x.Len)
		if after == uint64(m.PC) || x.HasTarget && x.Target == uint64(m.PC) && x.Flow != x86.FlowCall {
			list = append(list, evidence.Addr(x.PC))
		}
	}
	return list, nil
}
