package ask

import (
	"slices"

	"diagnose/evidence"
	"diagnose/watchtrace"
)

// futexSize is that of the words of locks, in bytes.
const futexSize = 4

// holders answers FormHolders by the writes of the words of the lock.
func (a *asker) holders() error {
	x, o, err := a.memoryOf()
	if err != nil {
		return err
	}
	words, err := lockWords(a.rec, a.q.Asked, x.addr, x.typ)
	if err != nil {
		return err
	}
	var targets []watchtrace.Target
	for _, w := range words {
		targets = append(targets, watchtrace.Target{Name: a.q.Asked, Addr: w.addr, Size: futexSize})
	}
	t, err := a.planned(targets, o)
	if err != nil {
		return err
	}
	if err := t.run(o); err != nil {
		return err
	}
	for i := range words {
		t.gaps(i)
	}
	h := &holdings{trace: t, words: words}
	h.collect()
	h.finish(a)
	a.waits(t.log, x.addr)
	return nil
}

// holdings are the times for which threads hold a lock.
type holdings struct {
	*trace
	words []lockWord
	// holds are all, and ended has for each the index of the access that ended it, or -1.
	holds []Hold
	ended []int
}

func (h *holdings) collect() {
	for i := range h.log.Accesses {
		x := &h.log.Accesses[i]
		if int(x.Variable) >= h.birth || i < h.begin {
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
func (h *holdings) finish(a *asker) {
	for n := range h.holds {
		if h.ended[n] >= 0 && !h.plan.Since(&h.log.Accesses[h.ended[n]]) {
			continue
		}
		a.answer.Holds = append(a.answer.Holds, h.holds[n])
	}
	if n := len(a.answer.Holds) - a.q.Most; a.q.Most > 0 && n > 0 {
		a.answer.LeftOut, a.answer.Holds = uint64(n), slices.Clone(a.answer.Holds[n:])
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
