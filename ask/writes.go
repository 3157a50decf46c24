package ask

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
	"diagnose/watchtrace"
)

// mostBytes bounds the memory whose writes are traced.
const mostBytes = 512

// writes answers FormWrites and FormLastWrite.
func (a *asker) writes() error {
	x, o, err := a.memoryOf()
	if err != nil {
		return err
	}
	w := &tracedWrites{asker: a, memory: x, owner: o}
	if err := w.run(); err != nil {
		return err
	}
	list := w.own()
	w.covers()
	if a.q.Form == FormLastWrite {
		list = w.last(list)
	} else if n := len(list) - a.q.Most; a.q.Most > 0 && n > 0 {
		a.answer.LeftOut, list = uint64(n), list[n:]
	}
	return w.rows(list)
}

// memoryOf finds the memory that the question's expression names.
func (a *asker) memoryOf() (x *addressed, o *owner, err error) {
	err = a.stand(func(p *image.Process) (err error) {
		if x, err = address(p, a.q.Asked); err == nil {
			o = ownerOf(p, x, a.code)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	a.answer.Memory = o.memory
	return x, o, nil
}

// tracedWrites are the writes of memory.
type tracedWrites struct {
	*asker
	memory *addressed
	owner  *owner
	// traces have a part of the memory each. Where the memory was of other owners before, each trace has one pass, which has
	// the word of their lives, too: what happened before is told from what happened after.
	traces []*trace
}

// written is one write.
type written struct {
	*trace
	index int
}

func (w *written) access() *evidence.Access { return &w.log.Accesses[w.index] }

func (w *tracedWrites) run() error {
	most := min(w.memory.size, mostBytes)
	for offset := 0; offset < most; {
		t, size, err := w.part(offset, most-offset)
		if err != nil {
			return err
		}
		if err := t.run(w.owner); err != nil {
			return err
		}
		w.traces = append(w.traces, t)
		offset += size
	}
	if most < w.memory.size {
		w.answer.Coverage.gap(Gap{Kind: GapPart, Count: uint64(most), Of: uint64(w.memory.size)})
	}
	return nil
}

// part plans the trace of the memory from an offset on, as much of it as one trace can have.
func (w *tracedWrites) part(offset, most int) (t *trace, size int, err error) {
	for size = most; ; size = max(size/2, 1) {
		addr := w.memory.addr + evidence.Addr(offset)
		target := watchtrace.Target{Name: fmt.Sprintf("%v:%d", addr, size), Addr: addr, Size: size}
		if t, err = w.planned([]watchtrace.Target{target}, w.owner); err != nil {
			return nil, 0, err
		}
		t.offset = offset
		if len(t.plan.Passes) <= 1 || w.owner.birth == 0 || size == 1 {
			return t, size, nil
		}
		const largest = 16
		if size > 2*largest {
			size = 2 * largest // more never fit
		}
	}
}

// own returns the writes of the expression in the span, in their order, and counts those of other owners.
func (w *tracedWrites) own() []written {
	var list []written
	for _, t := range w.traces {
		for i := range t.log.Accesses {
			x := &t.log.Accesses[i]
			switch {
			case int(x.Variable) >= t.birth || x.Kind == evidence.CodeRead || !t.plan.Since(x):
			case i < t.begin:
				w.answer.Memory.Earlier++
			default:
				list = append(list, written{t, i})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b written) int { return ordered(a.access(), b.access()) })
	return list
}

// last returns the last write. Where parts of the memory were written last between the same events, it is not known which of
// these writes was the last, so there is one of each part.
func (w *tracedWrites) last(list []written) []written {
	var last []written
	for i := len(list) - 1; i >= 0 && ordered(list[i].access(), list[len(list)-1].access()) == 0; i-- {
		if !slices.ContainsFunc(last, func(x written) bool { return x.trace == list[i].trace && x.samePass(&list[i]) }) {
			last = append(last, list[i])
		}
	}
	slices.Reverse(last)
	return last
}

func (w *written) samePass(o *written) bool {
	return len(w.plan.Passes) == 1 || w.access().Offset == o.access().Offset
}

// covers notes what the traces cannot have seen of the memory.
func (w *tracedWrites) covers() {
	if w.memory.subject != nil && w.memory.listed() {
		w.answer.Coverage.gap(Gap{Kind: GapRegister})
	}
	passes := 0
	for _, t := range w.traces {
		passes += len(t.plan.Passes)
		for target := range t.birth {
			t.gaps(target)
		}
	}
	if passes > 1 {
		w.answer.Coverage.gap(Gap{Kind: GapOrder})
	}
}

// rows adds writes to the answer.
func (w *tracedWrites) rows(list []written) error {
	for _, t := range w.traces {
		var indices, rows []int
		for n := range list {
			if list[n].trace == t {
				indices, rows = append(indices, list[n].index), append(rows, n)
			}
		}
		calls, err := watchtrace.Calls(w.rec, t.log)
		if err != nil {
			return err
		}
		freed := t.frees(w.owner)
		moments := watchtrace.Moments(w.code(), t.log, indices)
		if err := w.exactMoments(t, indices, moments); err != nil {
			return err
		}
		w.answer.Writes = slices.Grow(w.answer.Writes, len(list))[:len(list)]
		for k, n := range rows {
			row := &w.answer.Writes[n]
			*row = w.row(t, indices[k], moments[k])
			row.By, row.Call = authorOf(&t.log.Accesses[indices[k]], calls)
			row.Freed = freed >= 0 && indices[k] > freed
		}
	}
	if w.q.Form != FormLastWrite {
		return nil
	}
	for n := range list {
		if err := w.details(&list[n], &w.answer.Writes[n]); err != nil {
			return err
		}
	}
	return nil
}

func (w *tracedWrites) row(t *trace, index int, m evidence.Moment) Write {
	x := &t.log.Accesses[index]
	offset := t.offset + int(x.Offset)
	row := Write{Instant: instant(m, x.Position), Thread: x.Thread, Address: w.memory.addr + evidence.Addr(offset), Size: int(x.Size),
		Site: t.log.Contexts[x.Context].Site, Locks: t.owned(x), Signal: int(x.Handler), Late: x.Unseen()}
	typ := w.memory.typ
	if w.memory.size != row.Size {
		row.Part = fmt.Sprintf("%s+%#x", w.q.Asked, offset)
		if typ != nil {
			if path, leaf, ok := value.Path(typ, int64(offset), row.Size); ok {
				row.Part, typ = w.q.Asked+path, leaf
			}
		}
	}
	row.Old, row.New = watchtrace.TextOf(w.code(), x.Old, typ, row.Size), watchtrace.TextOf(w.code(), x.New, typ, row.Size)
	return row
}

// details adds the stack of a write.
func (w *tracedWrites) details(x *written, row *Write) error {
	w.progress(Progress{Stage: StageDetails})
	w.answer.Coverage.Replays++
	seen, err := x.plan.Details(w.ctx, x.log, []int{x.index})
	if err != nil {
		return err
	}
	row.Stack = &seen[0].Stack
	if seen[0].Site != nil {
		row.Site = *seen[0].Site
	}
	return nil
}
