package ask

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/watchtrace"
)

// futexSize is that of the words of locks, in bytes.
const futexSize = 4

// holders answers FormHolders by the writes of the words of the lock.
func (a *asker) holders() error {
	var x *addressed
	var o *owner
	err := a.stand(func(p *image.Process) (err error) {
		if x, err = address(p, a.q.Asked); err == nil {
			o = ownerOf(p, x, a.code)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.answer.Memory = o.memory
	words, err := lockWords(a.rec, a.q.Asked, x.addr, x.typ)
	if err != nil {
		return err
	}
	var targets []watchtrace.Target
	for _, w := range words {
		targets = append(targets, watchtrace.Target{Name: a.q.Asked, Addr: w.addr, Size: futexSize})
	}
	birth := len(targets)
	if o.birth != 0 {
		targets = append(targets, watchtrace.Target{Name: o.birth.String(), Addr: o.birth, Size: o.birthSize})
	}
	t, err := a.trace(targets)
	if err != nil {
		return err
	}
	t.findBegin(o, birth)
	for i := range words {
		t.gaps(i)
	}
	h := &holdings{tracedWrites: t, words: words}
	h.collect(birth)
	h.finish()
	a.waits(t.log, x.addr)
	return nil
}

// holdings are the times for which threads hold a lock.
type holdings struct {
	*tracedWrites
	words []lockWord
	// holds are all, and ended has for each the index of the access that ended it, or -1.
	holds []Hold
	ended []int
}

func (h *holdings) collect(birth int) {
	for i := range h.log.Accesses {
		x := &h.log.Accesses[i]
		if int(x.Variable) >= birth || i < h.begin {
			if i < h.begin && int(x.Variable) < birth {
				h.answer.Memory.Earlier++
			}
			continue
		}
		switch h.words[x.Variable].change(x.Old, x.New) {
		case lockTaken:
			h.take(i, x, false)
		case readerCame:
			h.take(i, x, true)
		case lockReleased:
			h.release(i, x, false)
		case readerLeft:
			h.release(i, x, true)
		}
	}
}

func (h *holdings) take(index int, x *evidence.Access, shared bool) {
	h.holds = append(h.holds, Hold{Instant: h.at(index), Thread: x.Thread, Shared: shared, Site: h.log.Contexts[x.Context].Site})
	h.ended = append(h.ended, -1)
}

// at is when an access was made.
func (h *holdings) at(index int) Instant {
	x := &h.log.Accesses[index]
	return instant(evidence.Moment{Thread: x.Thread, Ordinal: x.Ordinal}, x.Position)
}

// release ends the hold of the thread that releases, or of another one if it has none.
func (h *holdings) release(index int, x *evidence.Access, shared bool) {
	found := -1
	for n := len(h.holds) - 1; n >= 0; n-- {
		if open := &h.holds[n]; h.ended[n] < 0 && open.Shared == shared && (found < 0 || open.Thread == x.Thread) {
			if found = n; open.Thread == x.Thread {
				break
			}
		}
	}
	if found < 0 {
		return
	}
	open, at := &h.holds[found], h.at(index)
	site := h.log.Contexts[x.Context].Site
	open.Released, open.By = &at, &site
	if open.Thread != x.Thread {
		open.Releaser = x.Thread
	}
	h.ended[found] = index
}

// finish answers with the holds that were, at least in part, in the span.
func (h *holdings) finish() {
	for n := range h.holds {
		if h.ended[n] >= 0 && !h.plan.Since(&h.log.Accesses[h.ended[n]]) {
			continue
		}
		h.answer.Holds = append(h.answer.Holds, h.holds[n])
	}
	if n := len(h.answer.Holds) - h.q.Most; h.q.Most > 0 && n > 0 {
		h.answer.LeftOut, h.answer.Holds = uint64(n), slices.Clone(h.answer.Holds[n:])
	}
}

// waits adds the threads that wait for the lock at the end.
func (a *asker) waits(log *evidence.AccessLog, lock evidence.Addr) {
	for i := range log.Acquisitions {
		if x := &log.Acquisitions[i]; x.Waiting && x.Lock.Address == lock {
			a.answer.Waits = append(a.answer.Waits, Wait{Thread: x.Thread, Event: x.Ordinal, Site: log.Contexts[x.Context].Site})
		}
	}
}
