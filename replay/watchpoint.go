package replay

import (
	"errors"
	"math/bits"
	"time"

	"diagnose/replay/ptrace"
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
	buffer   [8*debugRegisters + lockBytes*MostLocks]byte
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
func (o *Options) checkWatches() error {
	if len(o.Locks) > MostLocks {
		return inputf("replay: %d locks to be looked at, %d can be", len(o.Locks), MostLocks)
	}
	most := debugRegisters
	if len(o.Hooks) > 0 {
		most--
	}
	switch {
	case o.Backend == BackendProbe && len(o.Watches) > MostProbed:
		return inputf("replay: %d words to be watched by probes, %d can be", len(o.Watches), MostProbed)
	case o.Backend != BackendProbe && len(o.Watches) > most:
		return &RegisterError{len(o.Watches)}
	}
	for i, w := range o.Watches {
		if w.Size != 1 && w.Size != 2 && w.Size != 4 && w.Size != 8 || uint64(w.Addr)%uint64(w.Size) != 0 {
			return inputf("replay: watch %d is of %d bytes at %v: a watch is of 1, 2, 4 or 8 bytes at a multiple of that", i, w.Size, w.Addr)
		}
		if uint64(w.Addr) >= 1<<47 {
			return inputf("replay: watch %d is at %v, where no program has memory", i, w.Addr)
		}
	}
	return nil
}

// startTracing is for the process of the recording asked for, before it runs on;
// of a fork's child, what its parent did before is not its own.
func (c *controller) startTracing() error {
	n := len(c.opts.Watches)
	tr := &tracing{c: c, watches: c.opts.Watches, known: make([]uint64, n), read: make([]bool, n), code: newCodeReader(c),
		indices: map[int]uint32{}, quit: make(chan struct{})}
	c.tracing = tr
	for i := range c.opts.Watches {
		tr.initial(i)
	}
	if c.opts.Backend == BackendProbe {
		return c.watchByProbes()
	}
	// Only stops can be inspected.
	kernel := c.opts.Backend == BackendBPF || c.opts.Backend == "" && len(c.opts.Inspect) == 0
	switch {
	case c.opts.Backend != "" && c.opts.Backend != BackendBPF && c.opts.Backend != BackendPtrace:
		return &UnsupportedError{c.opts.Backend, errors.ErrUnsupported}
	case c.opts.Backend == BackendBPF && len(c.opts.Inspect) > 0:
		return inputf("replay: the back end %s cannot stop at accesses", BackendBPF)
	case kernel:
		k, err := newKernelWatches(tr)
		if err == nil {
			tr.kernel = k
			c.watchRegisters = watchRegisters{kernel: len(tr.watches)}
			c.result.Backend = BackendBPF
			c.collecting.Go(c.collect)
			return nil
		}
		if c.opts.Backend != "" {
			return err
		}
	}
	c.watchByStops()
	return nil
}

// watchByStops selects the back end that works wherever processes can be traced. A stop is two
// switches between the process and this thread, which cost half as much on one processor.
func (c *controller) watchByStops() {
	c.pin()
	c.watchRegisters = newWatchRegisters(c.opts.Watches)
	c.result.Backend = BackendPtrace
}

func (c *controller) stopTracing() {
	if c.tracing == nil {
		return
	}
	close(c.tracing.quit)
	c.collecting.Wait()
	c.tracing.code.close()
	if c.tracing.kernel != nil {
		c.tracing.kernel.close()
	}
	if c.tracing.probes != nil {
		c.tracing.probes.close()
	}
}

// collect empties the ring while the process runs.
func (c *controller) collect() {
	tick := time.NewTicker(ringInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.tracing.quit:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		err := c.tracing.collected(nil)
		c.mu.Unlock()
		if err != nil {
			c.watch.rouse(wakeHits)
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
	case tr.probes != nil && len(tr.c.opts.Inspect) == 0:
		tr.err = tr.probes.drain(nil)
	}
	return tr.err
}

// armWatches arms the watches of a new thread, before its first instruction.
func (c *controller) armWatches(t *thread) error {
	if len(c.opts.Watches) == 0 || !c.last() || t.watched {
		return nil
	}
	t.watched = true
	first := c.tracing == nil
	if first {
		if err := c.startTracing(); err != nil {
			return err
		}
	}
	if p := c.tracing.probes; p != nil {
		return p.arm(t)
	}
	if k := c.tracing.kernel; k != nil {
		err := k.arm(t.tid)
		var cannot *UnsupportedError
		if err == nil || !first || c.opts.Backend != "" || !errors.As(err, &cannot) {
			return err
		}
		k.close()
		c.tracing.kernel = nil
		c.watchByStops()
	}
	return setDebug(t.tid, &c.watchRegisters)
}

const (
	trapTrace      = 2 // TRAP_TRACE
	trapBreakpoint = 1 // TRAP_BRKPT
	trapHardware   = 4 // TRAP_HWBKPT
)

// onlyWatch returns the value of DR6 after a trap of a debug register, if the thread uses only
// one; otherwise 0.
func (c *controller) onlyWatch(t *thread, s *signalStop) uint64 {
	taken := c.watchRegisters.taken
	if s.code != trapHardware || bits.OnesCount8(taken) != 1 || c.placer.breaks(t) {
		return 0
	}
	return uint64(taken)
}

// watchTrap handles a SIGTRAP that may be from a watch. other: it may also have another cause.
func (c *controller) watchTrap(t *thread, s *signalStop) (hit, other bool, err error) {
	if c.tracing == nil || c.watchRegisters.taken == 0 || s.code != trapHardware && s.code != trapTrace && s.code != trapBreakpoint {
		return false, true, nil
	}
	status := c.onlyWatch(t, s)
	if status == 0 {
		if status, err = ptrace.GetDebug(t.tid, 6); err != nil {
			return false, true, err
		}
	}
	const all = 1<<debugRegisters - 1
	hits := uint8(status) & c.watchRegisters.taken
	if hits == 0 {
		return false, true, nil
	}
	see, err := c.see(t, &s.regs)
	if err != nil {
		return true, false, err
	}
	for i := range c.tracing.watches {
		see.watches |= hits >> watchRegister(i) & 1 << i
	}
	return true, uint8(status)&all != hits || s.code == trapTrace, c.tracing.take(see, t)
}
