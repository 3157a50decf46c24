package replay

import (
	"errors"
	"maps"
	"slices"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
	"diagnose/replay/watchpoint"
)

// checkWatches returns an error if the watches are not valid or the debug registers do not
// suffice.
func (p *parts) checkWatches() error {
	o := &p.watching
	if len(o.Locks) > MostLocks {
		return tracee.Inputf("replay: %d locks to be looked at, %d can be", len(o.Locks), MostLocks)
	}
	most := tracee.DebugRegisters
	if len(p.Hooks) > 0 {
		most--
	}
	switch {
	case o.Backend == BackendProbe && len(o.Watches) > MostProbed:
		return tracee.Inputf("replay: %d words to be watched by probes, %d can be", len(o.Watches), MostProbed)
	case o.Backend != BackendProbe && len(o.Watches) > most:
		return &RegisterError{Watches: len(o.Watches)}
	}
	for i, w := range o.Watches {
		if w.Size != 1 && w.Size != 2 && w.Size != 4 && w.Size != 8 || uint64(w.Addr)%uint64(w.Size) != 0 {
			return tracee.Inputf("replay: watch %d is of %d bytes at %v: a watch is of 1, 2, 4 or 8 bytes at a multiple of that", i, w.Size, w.Addr)
		}
		if uint64(w.Addr) >= 1<<47 {
			return tracee.Inputf("replay: watch %d is at %v, where no program has memory", i, w.Addr)
		}
	}
	return nil
}

// armWatches arms the watches of a new thread, before its first instruction.
func (c *controller) armWatches(t *tracee.Thread) error {
	if len(c.request.watching.Watches) == 0 || !c.IsLast() || t.Watched {
		return nil
	}
	t.Watched = true
	first := c.tracing == nil
	if first {
		w := &c.request.watching
		earlier := uint64(0)
		if from := c.request.from; from != nil {
			earlier, _ = w.Earlier(from)
		}
		c.tracing = watchpoint.New(c.Process, c.Stage(), c.placer, watchOwner{c}, &watchpoint.Plan{Watches: w.Watches, Backend: w.Backend,
			Probes: w.Probes, MostStops: w.MostStops, Locks: w.Locks, OnHit: w.OnHit, Inspected: slices.Collect(maps.Keys(w.Inspect)), Earlier: earlier})
		if err := c.tracing.Start(); err != nil {
			return err
		}
	}
	return c.tracing.Arm(t, first)
}

// resume resumes a thread that a watch stopped. It also resumes the others, if an inspection
// stopped them.
func (c *controller) resume(t *tracee.Thread) error {
	if !c.allStopped {
		return c.cont(t, 0)
	}
	c.allStopped = false
	return c.goOn()
}

// watchOwner is the controller as the tracing of its process sees it.
type watchOwner struct{ c *controller }

func (o watchOwner) Lock()      { o.c.mu.Lock() }
func (o watchOwner) Unlock()    { o.c.mu.Unlock() }
func (o watchOwner) Over() bool { return o.c.end != nil }
func (o watchOwner) NoteHit()   { o.c.watch.hits.Add(1) }
func (o watchOwner) Interrupt() { o.c.watch.rouse(wakeHits) }
func (o watchOwner) Pause()     { o.c.watch.pause() }
func (o watchOwner) Unpause()   { o.c.watch.resume() }

func (o watchOwner) Resume(t *tracee.Thread) error     { return o.c.resume(t) }
func (o watchOwner) Continue(t *tracee.Thread) error   { return o.c.cont(t, 0) }
func (o watchOwner) HandleStop(stop ptrace.Stop) error { return o.c.handle(stop) }

// Inspect stops all threads and calls the requested inspection of a hit.
func (o watchOwner) Inspect(h *Hit, t *tracee.Thread) error {
	c := o.c
	if err := c.StopAll(); err != nil {
		return err
	}
	c.watch.pause()
	defer c.watch.resume()
	s, err := c.stopped(t)
	if err != nil {
		return err
	}
	defer s.close()
	c.attempt.hooked = true
	if err := c.request.watching.Inspect[h.Number](h, s); errors.Is(err, ErrEnough) {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	} else if err != nil {
		return err
	}
	c.allStopped = true
	return nil
}
