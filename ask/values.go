package ask

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
	"diagnose/watchtrace"
)

// shown are the bounds of a printed value.
var shown = value.Options{Depth: 3, Elements: 8, StringBytes: 80, Values: 64, TextBytes: 160, Shallow: true}

const (
	// mostWords bounds the words that the values of an expression may depend on, mostRounds how often more of them are looked for:
	// once for each pointer on the way.
	mostWords  = 48
	mostRounds = 12
)

// values answers FormValues. The words that the expression reads are watched, and the expression is evaluated again after each of
// their writes, in the memory as it was then. Where that leads to other words, these are watched as well.
func (a *asker) values() error {
	var s *subject
	m := &pastMemory{words: map[evidence.Addr]*pastWord{}}
	var life *owner
	err := a.stand(func(p *image.Process) (err error) {
		if isMemory(a.q.Asked) {
			return &Error{Asked: a.q.Asked, Problem: "values are those of an expression with a type, such as *(long *)0x5555555580a0"}
		}
		// Without a value at the end, because a pointer leads nowhere then, it may have had others.
		s, err = find(p, a.q.Asked)
		var missing *value.UnavailableError
		if err != nil && (s == nil || errors.As(err, &missing)) {
			return err
		}
		for _, v := range s.locals {
			where, err := value.Lives(s.frame, v)
			if err == nil && !where.InMemory {
				return &Error{Asked: a.q.Asked, Problem: fmt.Sprintf("%s is in registers, or in several pieces, %s, where changes are not seen; 'diagnose probe --at FILE:LINE --print' shows it at lines", v.Name, s.where())}
			}
		}
		if len(s.locals) > 0 {
			life = lifeOfFrame(p, s, a.code)
			a.answer.Memory = life.memory
		}
		m.from(p)
		_ = m.evaluate(s) // the words that it lacks are looked for below
		return m.read(p)
	})
	if err != nil {
		return err
	}
	for range mostRounds {
		x, more, err := a.valuesOnce(s, m, life)
		if err != nil {
			return err
		}
		if more == 0 || len(m.words) >= mostWords {
			if err := x.finish(); err != nil {
				return err
			}
			a.answer.Values = x.list
			if more > 0 {
				a.answer.Coverage.gap(Gap{Kind: GapWords, Count: mostWords})
			}
			a.valueGaps(x.trace, s, m)
			a.cutValues()
			return nil
		}
		if err := a.stand(m.read); err != nil {
			return err
		}
	}
	return &Error{Asked: a.q.Asked, Problem: fmt.Sprintf("its past values lead to ever more memory, even after %d replays; ask about a part of it", mostRounds)}
}

func (a *asker) cutValues() {
	if n := len(a.answer.Values) - a.q.Most; a.q.Most > 0 && n > 0 {
		a.answer.LeftOut, a.answer.Values = uint64(n), slices.Clone(a.answer.Values[n:])
	}
}

// lifeOfFrame is the life of the call whose variables an expression uses.
func lifeOfFrame(p *image.Process, s *subject, code func() *image.Process) *owner {
	const word = 8
	life := ownerOf(p, &addressed{subject: s, addr: s.frame.CFA - 2*word, size: word}, code)
	o, err := s.object(p)
	if at, ok := o.Address(); err == nil && ok && o.Type != nil {
		life.memory.Address, life.memory.Size, life.memory.Type = at, int(min(o.Type.Size(), 1<<30)), o.Type.Name()
	}
	return life
}

// valuesOnce traces the words that are known to matter. more counts those that the evaluation needed besides.
func (a *asker) valuesOnce(s *subject, m *pastMemory, life *owner) (x *valueRun, more int, err error) {
	order := slices.Sorted(maps.Keys(m.words))
	var targets []watchtrace.Target
	var watched []*pastWord
	for _, addr := range order {
		if w := m.words[addr]; w.writable {
			targets, watched = append(targets, watchtrace.Target{Name: addr.String(), Addr: addr, Size: wordSize}), append(watched, w)
		}
	}
	a.answer.Coverage.Limits = nil // those of a trace of fewer words
	t, err := a.planned(targets, life)
	if err != nil {
		return nil, 0, err
	}
	if err := t.run(life); err != nil {
		return nil, 0, err
	}
	before := len(m.words)
	x = &valueRun{trace: t, subject: s, memory: m, watched: watched, local: life != nil && t.begin >= 0}
	if x.calls, err = watchtrace.Calls(a.rec, t.log); err != nil {
		return nil, 0, err
	}
	m.rewind(t.log, watched)
	x.run()
	return x, len(m.words) - before, nil
}

// valueGaps notes what the trace of the values cannot have seen.
func (a *asker) valueGaps(t *trace, s *subject, m *pastMemory) {
	c := &a.answer.Coverage
	if s.listed() {
		c.gap(Gap{Kind: GapRegister})
	}
	for i := range t.log.Variables {
		t.gaps(i)
	}
	// A value that was written again is no change of the expression.
	c.Gaps = slices.DeleteFunc(c.Gaps, func(g Gap) bool { return g.Kind == GapKernel })
	if m.unread > 0 {
		c.gap(Gap{Kind: GapWords, Count: uint64(len(m.words))})
	}
	if len(t.plan.Passes) > 1 {
		c.gap(Gap{Kind: GapBetween})
	}
}
