package ask

import (
	"reflect"

	"diagnose/evidence"
	"diagnose/watchtrace"
)

// valueRun evaluates an expression after each write of the words that it depends on.
type valueRun struct {
	*trace
	subject *subject
	memory  *pastMemory
	watched []*pastWord
	calls   map[watchtrace.CallKey]string
	// local: it has variables of a call, which began in the recording.
	local bool
	list  []Reading
	// indices are the accesses of the list; -1: the start of the span.
	indices []int
	started bool
}

// run goes through the log. Writes of several passes between two events of a thread are in no order, so the expression is evaluated
// when all of them are made.
func (x *valueRun) run() {
	list := x.log.Accesses
	for i := 0; i < len(list); {
		end := i + 1
		for len(x.plan.Passes) > 1 && end < len(list) && ordered(&list[i], &list[end]) == 0 {
			end++
		}
		x.step(i, end)
		i = end
	}
	if !x.started {
		x.first()
	}
}

// step makes the writes from an index up to another one, and evaluates the expression after them.
func (x *valueRun) step(begin, end int) {
	last := -1
	for i := begin; i < end; i++ {
		access := &x.log.Accesses[i]
		if !x.started && end > x.begin && x.plan.Since(access) {
			x.first()
		}
		if int(access.Variable) < x.birth && access.Kind != evidence.CodeRead {
			x.watched[access.Variable].write(access)
			last = i
		}
	}
	if x.started && last >= 0 {
		x.add(last)
	}
}

// first adds the value at the start of the span. A variable of a call that begins in the span has none then.
func (x *valueRun) first() {
	x.started = true
	v := x.memory.evaluate(x.subject)
	if !x.local || x.begin >= 0 && !x.plan.Since(&x.log.Accesses[x.begin]) {
		x.list, x.indices = append(x.list, Reading{Value: v}), append(x.indices, -1)
	}
}

func (x *valueRun) add(i int) {
	v := x.memory.evaluate(x.subject)
	if n := len(x.list); n > 0 && reflect.DeepEqual(x.list[n-1].Value, v) {
		return
	}
	access := &x.log.Accesses[i]
	row := Reading{Instant: x.at(i), Thread: access.Thread, Value: v, Site: x.log.Contexts[access.Context].Site}
	row.By, row.Call = authorOf(access, x.calls)
	x.list, x.indices = append(x.list, row), append(x.indices, i)
}

// finish fills in the moments.
func (x *valueRun) finish() error {
	var rows, indices []int
	for n, i := range x.indices {
		if i >= 0 {
			rows, indices = append(rows, n), append(indices, i)
		} else if from := x.asker.answer.Span.From; from != nil {
			x.list[n].Instant = *from
		}
	}
	moments := watchtrace.Moments(x.asker.code(), x.log, indices)
	if err := x.asker.exactMoments(x.trace, indices, moments); err != nil {
		return err
	}
	for n, m := range moments {
		row := &x.list[rows[n]]
		row.Instant = instant(m, row.Position)
	}
	return nil
}
