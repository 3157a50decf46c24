package ask

import (
	"fmt"
	"maps"
	"reflect"
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
	life := &owner{memory: &Memory{Proof: evidence.Replayed}}
	err := a.stand(func(p *image.Process) (err error) {
		if isMemory(a.q.Asked) {
			return &Error{Asked: a.q.Asked, Problem: "values are those of an expression with a type, such as *(long *)0x5555555580a0"}
		}
		if s, err = find(p, a.q.Asked); err != nil && s == nil {
			return err
		}
		for _, v := range s.locals {
			where, err := value.Lives(s.frame, v)
			if err == nil && !where.InMemory {
				return &Error{Asked: a.q.Asked, Problem: fmt.Sprintf("%s is in a register %s, where changes are not seen; 'diagnose probe --at FILE:LINE --print' shows it at lines", v.Name, s.where())}
			}
		}
		if len(s.locals) > 0 && s.frame.CFA != 0 {
			const word = 8
			life = ownerOf(p, &addressed{subject: s, addr: s.frame.CFA - 2*word, size: word}, a.code)
		}
		m.from(p)
		_ = m.evaluate(s) // the words that it lacks are looked for below
		return m.read(p)
	})
	if err != nil {
		return err
	}
	a.answer.Memory = life.memory
	if life.memory.Home != HomeStack {
		a.answer.Memory = nil
		life.birth = 0
	}
	for range mostRounds {
		t, more, err := a.valuesOnce(s, m, life)
		if err != nil {
			return err
		}
		if more == 0 || len(m.words) >= mostWords {
			if more > 0 {
				a.answer.Coverage.gap(Gap{Kind: GapWords, Count: mostWords})
			}
			t.valueGaps(s, m)
			a.cutValues()
			return nil
		}
		if err := a.stand(m.read); err != nil {
			return err
		}
	}
	a.answer.Coverage.gap(Gap{Kind: GapWords, Count: uint64(len(m.words))})
	a.cutValues()
	return nil
}

func (a *asker) cutValues() {
	if n := len(a.answer.Values) - a.q.Most; a.q.Most > 0 && n > 0 {
		a.answer.LeftOut, a.answer.Values = uint64(n), slices.Clone(a.answer.Values[n:])
	}
}

// valuesOnce traces the words that are known to matter. more counts those that the evaluation needed besides.
func (a *asker) valuesOnce(s *subject, m *pastMemory, life *owner) (t *tracedWrites, more int, err error) {
	order := slices.Sorted(maps.Keys(m.words))
	var targets []watchtrace.Target
	var watched []*pastWord
	for _, addr := range order {
		if w := m.words[addr]; w.writable {
			targets, watched = append(targets, watchtrace.Target{Name: addr.String(), Addr: addr, Size: wordSize}), append(watched, w)
		}
	}
	birth := len(targets)
	if life.birth != 0 {
		targets = append(targets, watchtrace.Target{Name: life.birth.String(), Addr: life.birth, Size: life.birthSize})
	}
	a.answer.Coverage.Limits = nil // those of a trace of fewer words
	if t, err = a.trace(targets); err != nil {
		return nil, 0, err
	}
	t.findBegin(life, birth)
	calls, err := watchtrace.Calls(a.rec, t.log)
	if err != nil {
		return nil, 0, err
	}
	before := len(m.words)
	m.rewind(t.log, watched)
	x := &valueRun{tracedWrites: t, subject: s, memory: m, watched: watched, birth: birth, calls: calls, local: life.birth != 0}
	x.run()
	a.answer.Values = x.list
	return t, len(m.words) - before, nil
}

// valueRun evaluates an expression after each write.
type valueRun struct {
	*tracedWrites
	subject *subject
	memory  *pastMemory
	watched []*pastWord
	birth   int
	calls   map[watchtrace.CallKey]string
	local   bool
	list    []Value
	// indices are the accesses of the list; -1: the start of the span.
	indices []int
}

func (x *valueRun) run() {
	started := false
	for i := range x.log.Accesses {
		access := &x.log.Accesses[i]
		if !started && i > x.begin && x.plan.Since(access) {
			started = true
			x.first()
		}
		if int(access.Variable) >= x.birth || access.Kind == evidence.CodeRead {
			continue
		}
		x.watched[access.Variable].write(access)
		if started {
			x.add(i)
		}
	}
	if !started {
		x.first()
	}
	x.finish()
}

// first adds the value at the start. A local variable has none then.
func (x *valueRun) first() {
	v := x.memory.evaluate(x.subject)
	if !x.local || x.q.From != nil {
		x.list, x.indices = append(x.list, Value{Value: v}), append(x.indices, -1)
	}
}

func (x *valueRun) add(i int) {
	v := x.memory.evaluate(x.subject)
	if n := len(x.list); n > 0 && reflect.DeepEqual(x.list[n-1].Value, v) {
		return
	}
	access := &x.log.Accesses[i]
	row := Value{Thread: access.Thread, Value: v, Site: x.log.Contexts[access.Context].Site}
	row.Instant = instant(evidence.Moment{Thread: access.Thread, Ordinal: access.Ordinal}, access.Position)
	row.By, row.Call = authorOf(access, x.calls)
	x.list, x.indices = append(x.list, row), append(x.indices, i)
}

// finish fills in the moments.
func (x *valueRun) finish() {
	var rows, indices []int
	for n, i := range x.indices {
		if i >= 0 {
			rows, indices = append(rows, n), append(indices, i)
		} else if from := x.answer.Span.From; from != nil {
			x.list[n].Instant = *from
		}
	}
	for n, m := range watchtrace.Moments(x.code(), x.log, indices) {
		row := &x.list[rows[n]]
		row.Instant = instant(m, row.Position)
	}
}

// valueGaps notes what the trace of the values cannot have seen.
func (t *tracedWrites) valueGaps(s *subject, m *pastMemory) {
	if s.listed() {
		t.answer.Coverage.gap(Gap{Kind: GapRegister})
	}
	c := &t.answer.Coverage
	for i := range t.log.Variables {
		t.gaps(i)
	}
	// A value that was written again is no change of the expression.
	c.Gaps = slices.DeleteFunc(c.Gaps, func(g Gap) bool { return g.Kind == GapKernel })
	if m.unread > 0 {
		c.gap(Gap{Kind: GapWords, Count: uint64(len(m.words))})
	}
}
