package watchpoint

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/tracee"
)

// take makes hits of a sighting. t is nil if the thread has not been stopped.
func (tr *Tracing) take(s *sighting, t *tracee.Thread) error {
	if tr.breakpoints.IsComparison(s.regs.Rip) {
		return nil // the comparison of a probe
	}
	for i := range tr.watches {
		if err := tr.takeOne(s, i, t); err != nil {
			return err
		}
	}
	return nil
}

func (tr *Tracing) takeOne(s *sighting, watch int, t *tracee.Thread) error {
	if s.watches&(1<<watch) == 0 {
		return nil
	}
	h := Hit{Watch: watch, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Turn: s.turn, Held: s.held}
	changed := uint64(0)
	if s.valid&(1<<watch) != 0 {
		changed = s.words[watch] ^ tr.known[watch]
	}
	inst := tr.code.explain(s, &tr.watches[watch], changed, &h)
	now, err := tr.value(s, watch, inst)
	if err != nil {
		return err
	}
	if !tr.read[watch] {
		tr.known[watch], tr.read[watch] = tr.mapped(watch, now), true
	}
	h.Old, h.New = tr.known[watch], now
	tr.known[watch] = now
	if h.Kind == evidence.CodeUnknown && h.Old != h.New {
		h.Kind = evidence.CodeWrite
	}
	if h.Old != now && h.Kind == evidence.CodeRead {
		if err := tr.emit(unseenWrite(h), t); err != nil {
			return err
		}
		h.Old = now
	}
	if h.By == evidence.ByCall && t != nil {
		h.New = tr.code.copied(s, &tr.watches[watch], now)
	}
	return tr.emit(h, t)
}

// unseenWrite is for a change that was not made by an instruction that traps: the kernel made it,
// or the tracer.
func unseenWrite(h Hit) Hit {
	h.PC, h.SP, h.Caller, h.Kind, h.By = 0, 0, 0, evidence.CodeWrite, evidence.ByCall
	return h
}

// value returns the word after the access: as it was read, or, for back ends that need not read
// it, as the instruction tells.
func (tr *Tracing) value(s *sighting, watch int, inst *x86.Inst) (uint64, error) {
	now := s.words[watch]
	if tr.kernel == nil {
		if s.valid&(1<<watch) == 0 {
			return tr.known[watch], nil // unmapped meanwhile
		}
		return now, nil
	}
	var told toldValue
	if tr.code.stretch(s.regs.Rip).repeat == nil {
		told = tellValue(inst, &s.regs, &tr.watches[watch], tr.known[watch])
	}
	switch {
	case s.valid&(1<<watch) != 0:
		if !tr.read[watch] {
			return now, nil
		}
		return now, tr.kernel.learn(s.regs.Rip, told, now)
	case told.class == codeTellsNothing:
		return 0, fmt.Errorf("replay: the value of a watched word after the access at %#x is not known", s.regs.Rip)
	}
	return told.value, nil
}

// emit numbers a hit. A system call's byte-by-byte copy is one hit.
func (tr *Tracing) emit(h Hit, t *tracee.Thread) error {
	if p := tr.pending; p != nil {
		if h.By == evidence.ByCall && p.Watch == h.Watch && p.Thread == h.Thread && p.Ordinal == h.Ordinal && p.Kind == h.Kind && p.PC == h.PC {
			p.New = h.New
			return nil
		}
		if err := tr.flush(); err != nil {
			return err
		}
	}
	h.Number = tr.number
	tr.number++
	if t != nil && slices.Contains(tr.asked.Inspected, h.Number) {
		if err := tr.replay.Inspect(&h, t); err != nil {
			return err
		}
	}
	if h.By == evidence.ByCall {
		tr.pending = &h
		return nil
	}
	return tr.deliver(&h)
}

func (tr *Tracing) flush() error {
	p := tr.pending
	tr.pending = nil
	if p == nil {
		return nil
	}
	return tr.deliver(p)
}

func (tr *Tracing) deliver(h *Hit) error {
	tr.Counts.Hits++
	tr.replay.NoteHit()
	if f := tr.asked.OnHit; f != nil {
		return f(h)
	}
	return nil
}

// Finish runs at the end of the replay. A change after the last hit is an access, too, by the
// thread that ended the replay; nil: none did.
func (tr *Tracing) Finish(last *tracee.Thread) error {
	if tr.process.Detached {
		return nil
	}
	tr.replay.Lock()
	defer tr.replay.Unlock()
	if tr.probes != nil {
		return tr.probes.finish()
	}
	if err := tr.Collected(func(int) bool { return true }); err != nil {
		return err
	}
	if err := tr.process.LiftProtection(); err != nil {
		return err
	}
	if tr.kernel != nil {
		var err error
		if tr.Counts.Lost, err = tr.kernel.lostHits(); err != nil {
			return err
		}
	}
	tr.Counts.Lost += tr.strays
	s := &sighting{index: 1}
	if last != nil {
		s.index = max(last.Index, 1)
	}
	if err := tr.readWords(s, tr.process.Control != 0); err != nil {
		return err
	}
	for i := range tr.watches {
		if s.valid&(1<<i) == 0 || !tr.read[i] || s.words[i] == tr.known[i] {
			continue
		}
		h := Hit{Watch: i, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Turn: s.turn, Held: s.held, Old: tr.known[i], New: s.words[i]}
		tr.known[i] = s.words[i]
		if err := tr.emit(unseenWrite(h), nil); err != nil {
			return err
		}
	}
	return tr.flush()
}
