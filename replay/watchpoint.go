package replay

import (
	"errors"
	"math/bits"
	"time"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// tracing makes Hits of the accesses that a back end saw.
type tracing struct {
	c       *controller
	watches []Watch
	// known are the words as they were after the last hit of any of them; read says which of them
	// have ever been read.
	known []uint64
	read  []bool
	code  *codeReader
	// pending is the last hit, if it is by a system call. That copies byte by byte, so more of it
	// may follow.
	pending  *Hit
	number   uint64
	gathered gathered
	buffer   [8*tracee.DebugRegisters + lockBytes*MostLocks]byte
	// kernel is the back end that does not stop threads; nil if another is used.
	kernel *kernelWatches
	// probes is the back end that runs in the process; nil if another is used.
	probes *probes
	// indices are the threads' numbers in the recording, by the kernel's id.
	indices map[int]uint32
	quit    chan struct{}
	err     error
}

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

func newTracing(c *controller) *tracing {
	n := len(c.request.watching.Watches)
	tr := &tracing{c: c, watches: c.request.watching.Watches, known: make([]uint64, n), read: make([]bool, n), code: newCodeReader(c.Process),
		indices: map[int]uint32{}, quit: make(chan struct{})}
	for i := range tr.watches {
		tr.initial(i)
	}
	return tr
}

// start chooses the back end. It is called for the process of the requested recording before it
// continues. What its parent did before the fork is not part of it.
func (tr *tracing) start() error {
	asked := &tr.c.request.watching
	if asked.Backend == BackendProbe {
		return tr.watchByProbes()
	}
	// Only stops can be inspected.
	kernel := asked.Backend == BackendBPF || asked.Backend == "" && len(asked.Inspect) == 0
	switch {
	case asked.Backend != "" && asked.Backend != BackendBPF && asked.Backend != BackendPtrace:
		return &UnsupportedError{asked.Backend, errors.ErrUnsupported}
	case asked.Backend == BackendBPF && len(asked.Inspect) > 0:
		return tracee.Inputf("replay: the back end %s cannot stop at accesses", BackendBPF)
	case kernel:
		k, err := newKernelWatches(tr)
		if err == nil {
			tr.kernel = k
			tr.c.WatchRegisters = tracee.WatchRegisters{Kernel: len(tr.watches)}
			tr.c.result.Backend = BackendBPF
			tr.c.collecting.Go(tr.collect)
			return nil
		}
		if asked.Backend != "" {
			return err
		}
	}
	tr.watchByStops()
	return nil
}

// watchByStops selects the back end that works wherever processes can be traced. A stop is two
// switches between the process and this thread, which cost half as much on one processor.
func (tr *tracing) watchByStops() {
	tr.c.Pin()
	tr.c.WatchRegisters = tracee.NewWatchRegisters(tr.c.request.watching.Watches)
	tr.c.result.Backend = BackendPtrace
}

// stop ends the tracing by the back end.
func (tr *tracing) stop() {
	close(tr.quit)
	tr.c.collecting.Wait()
	tr.code.close()
	if tr.kernel != nil {
		tr.kernel.close()
	}
	if tr.probes != nil {
		tr.probes.close()
	}
}

// collect empties the ring while the process runs.
func (tr *tracing) collect() {
	tick := time.NewTicker(ringInterval)
	defer tick.Stop()
	for {
		select {
		case <-tr.quit:
			return
		case <-tick.C:
		}
		tr.c.mu.Lock()
		err := tr.collected(nil)
		tr.c.mu.Unlock()
		if err != nil {
			tr.c.watch.rouse(wakeHits)
			return
		}
	}
}

// collected takes the accesses seen by back ends that do not stop threads. stands reports whether
// a thread is stopped; nil: none is. An error is kept for the thread that the watchdog wakes.
func (tr *tracing) collected(stands func(tid int) bool) error {
	switch {
	case tr.err != nil:
	case tr.kernel != nil:
		tr.err = tr.kernel.drain(stands)
	case tr.probes != nil && len(tr.c.request.watching.Inspect) == 0:
		tr.err = tr.probes.drain(nil)
	}
	return tr.err
}

// armWatches arms the watches of a new thread, before its first instruction.
func (c *controller) armWatches(t *tracee.Thread) error {
	if len(c.request.watching.Watches) == 0 || !c.IsLast() || t.Watched {
		return nil
	}
	t.Watched = true
	first := c.tracing == nil
	if first {
		c.tracing = newTracing(c)
		if err := c.tracing.start(); err != nil {
			return err
		}
	}
	return c.tracing.arm(t, first)
}

// arm traces the accesses of one more thread. first: if the back end cannot trace it and was not
// requested by name, another one is used.
func (tr *tracing) arm(t *tracee.Thread, first bool) error {
	if p := tr.probes; p != nil {
		return p.arm(t)
	}
	if k := tr.kernel; k != nil {
		err := k.arm(t.TID)
		var cannot *UnsupportedError
		if err == nil || !first || tr.c.request.watching.Backend != "" || !errors.As(err, &cannot) {
			return err
		}
		k.close()
		tr.kernel = nil
		tr.watchByStops()
	}
	return tracee.SetDebug(t.TID, &tr.c.WatchRegisters)
}

// onlyWatch returns the value of DR6 after a trap of a debug register, if the thread uses only
// one; otherwise 0.
func (tr *tracing) onlyWatch(t *tracee.Thread, s *tracee.SignalStop) uint64 {
	taken := tr.c.WatchRegisters.Taken
	if s.Code != tracee.TrapHardware || bits.OnesCount8(taken) != 1 || tr.c.placer.UsesRegister(t) {
		return 0
	}
	return uint64(taken)
}

// watchTrap handles a SIGTRAP that may be from a watch. other: it may also have another cause.
func (tr *tracing) watchTrap(t *tracee.Thread, s *tracee.SignalStop) (hit, other bool, err error) {
	if tr.c.WatchRegisters.Taken == 0 || s.Code != tracee.TrapHardware && s.Code != tracee.TrapTrace && s.Code != tracee.TrapBreakpoint {
		return false, true, nil
	}
	status := tr.onlyWatch(t, s)
	if status == 0 {
		if status, err = ptrace.GetDebug(t.TID, 6); err != nil {
			return false, true, err
		}
	}
	const all = 1<<tracee.DebugRegisters - 1
	hits := uint8(status) & tr.c.WatchRegisters.Taken
	if hits == 0 {
		return false, true, nil
	}
	see, err := tr.see(t, &s.Regs)
	if err != nil {
		return true, false, err
	}
	for i := range tr.watches {
		see.watches |= hits >> tracee.RegisterOf(i) & 1 << i
	}
	return true, uint8(status)&all != hits || s.Code == tracee.TrapTrace, tr.take(see, t)
}
