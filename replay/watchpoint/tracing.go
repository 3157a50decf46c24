package watchpoint

import (
	"errors"
	"math/bits"
	"sync"
	"time"

	"diagnose/evidence"
	"diagnose/replay/breakpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Plan says which accesses are traced.
type Plan struct {
	Watches []tracee.Watch
	// Backend traces the accesses. If empty, the best one that works on this machine is used.
	Backend Backend
	// Probes are the instructions whose accesses BackendProbe sees. MostStops bounds how often it
	// may stop for accesses that it cannot see otherwise, and how often BackendPages may stop at
	// the pages of the words; beyond it the error is a *StopsError. 0 means no bound.
	Probes    []evidence.Addr
	MostStops uint64
	// Locks are read at each hit.
	Locks []LockWord
	// OnHit is called for each hit, in order. Inspected are the numbers of the hits at which the
	// process is inspected.
	OnHit     func(*Hit) error
	Inspected []uint64
	// Earlier is the number of the first hit: so many were before the replay began.
	Earlier uint64
}

// Replay is the replay whose process is traced. It is locked while a stop is handled, or accesses
// that need no stop.
type Replay interface {
	sync.Locker
	// Over reports whether the replay has ended.
	Over() bool
	// Inspect inspects the process with all threads stopped, a thread right after a hit. The other
	// threads continue when Resume is called for that one.
	Inspect(h *Hit, t *tracee.Thread) error
	Resume(t *tracee.Thread) error
	// Continue resumes only the thread.
	Continue(t *tracee.Thread) error
	// HandleStop handles a stop that is not the tracing's.
	HandleStop(stop ptrace.Stop) error
	// NoteHit is called for each hit: it is progress.
	NoteHit()
	// Interrupt stops the process, because accesses could not be taken (tracing.err).
	Interrupt()
	// Pause and Unpause are called before and after work during which the process makes no
	// progress.
	Pause()
	Unpause()
}

// Counts are what a tracing has seen.
type Counts struct {
	// Hits counts the hits that were passed to OnHit, Lost those that were not. Backend is the
	// back end that traced them.
	Hits, Lost uint64
	Backend    Backend
	// Unseen counts, by watch, how often a word had changed since the last access that
	// BackendProbe saw. Unprobed are the addresses of Probes that it could not see. Stops counts
	// the possible accesses for which it had to stop.
	Unseen   []uint64
	Unprobed []evidence.Addr
	Stops    uint64
}

// Tracing makes Hits of the accesses that a back end saw.
type Tracing struct {
	process     *tracee.Process
	stage       *recorded.Stage
	breakpoints *breakpoint.Breakpoints
	replay      Replay
	asked       *Plan
	Counts      Counts
	collecting  sync.WaitGroup
	watches     []tracee.Watch
	// known are the words as they were after the last hit of any of them; read says which of them
	// have ever been read.
	known []uint64
	read  []bool
	code  *codeReader
	// pending is the last hit, if it is by a system call. That copies byte by byte, so more of it
	// may follow.
	pending *Hit
	number  uint64
	// strays counts the traps that LostTrap found.
	strays   uint64
	gathered gathered
	buffer   [8*tracee.DebugRegisters + lockBytes*MostLocks]byte
	// kernel is the back end that does not stop threads; nil if another is used.
	kernel *kernelWatches
	// probes is the back end that runs in the process; nil if another is used.
	probes *probes
	// pages is the back end that protects pages; nil if another is used.
	pages *pages
	// indices are the threads' numbers in the recording, by the kernel's id.
	indices map[int]uint32
	quit    chan struct{}
	Err     error
}

func New(p *tracee.Process, s *recorded.Stage, b *breakpoint.Breakpoints, r Replay, asked *Plan) *Tracing {
	n := len(asked.Watches)
	tr := &Tracing{process: p, stage: s, breakpoints: b, replay: r, asked: asked, watches: asked.Watches, known: make([]uint64, n), read: make([]bool, n),
		number: asked.Earlier, code: newCodeReader(p), indices: map[int]uint32{}, quit: make(chan struct{})}
	// A read below the main thread's stack would make it grow.
	if maps, err := tracee.ReadMaps(p.PID); err == nil {
		for i := range tr.watches {
			if maps.Containing(uint64(tr.watches[i].Addr)) != nil {
				tr.initial(i)
			}
		}
	}
	return tr
}

// Start chooses the back end. It is called for the process of the requested recording before it
// continues. What its parent did before the fork is not part of it.
func (tr *Tracing) Start() error {
	asked := tr.asked
	switch asked.Backend {
	case BackendProbe:
		return tr.watchByProbes()
	case BackendPages:
		return tr.watchByPages()
	}
	switch err := ptrace.DebugRegistersFire(); {
	case err == nil:
	case asked.Backend == "" && errors.Is(err, ptrace.ErrNoDebugRegisters):
		return tr.watchByPages()
	default:
		return &UnsupportedError{asked.Backend, err}
	}
	// Only stops can be inspected.
	kernel := asked.Backend == BackendBPF || asked.Backend == "" && len(asked.Inspected) == 0
	switch {
	case asked.Backend != "" && asked.Backend != BackendBPF && asked.Backend != BackendPtrace:
		return &UnsupportedError{asked.Backend, errors.ErrUnsupported}
	case asked.Backend == BackendBPF && len(asked.Inspected) > 0:
		return tracee.Inputf("replay: the back end %s cannot stop at accesses", BackendBPF)
	case kernel:
		k, err := newKernelWatches(tr)
		if err == nil {
			tr.kernel = k
			tr.process.WatchRegisters = tracee.WatchRegisters{Kernel: len(tr.watches)}
			tr.Counts.Backend = BackendBPF
			tr.collecting.Go(tr.collect)
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
func (tr *Tracing) watchByStops() {
	tr.process.Pin()
	tr.process.WatchRegisters = tracee.NewWatchRegisters(tr.asked.Watches)
	tr.Counts.Backend = BackendPtrace
}

// HandleSignal handles a signal of a thread in code of the tracing. done: nothing is left to do.
func (tr *Tracing) HandleSignal(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	switch {
	case tr == nil:
		return false, nil
	case tr.pages != nil:
		return tr.pages.handle(t, s)
	case tr.probes != nil:
		return tr.probes.in.HandleStop(t, s)
	}
	return false, nil
}

// Ended is called for a thread that has ended.
func (tr *Tracing) Ended(tid int) {
	if tr.kernel != nil {
		tr.kernel.ended(tid)
	}
	if tr.pages != nil {
		tr.pages.ended(tid)
	}
}

// CanStep reports whether a thread can be stepped without loss. With watches by debug registers, a
// single stop would report both a step and an access.
func (tr *Tracing) CanStep() bool { return tr == nil || tr.kernel != nil }

// SetKnown says that the tool has changed a watched word.
func (tr *Tracing) SetKnown(watch int, value uint64) { tr.known[watch] = value }

// Stop ends the tracing by the back end.
func (tr *Tracing) Stop() {
	close(tr.quit)
	tr.collecting.Wait()
	tr.code.close()
	if tr.kernel != nil {
		tr.kernel.close()
	}
	if tr.probes != nil {
		tr.probes.close()
	}
}

// collect empties the ring while the process runs.
func (tr *Tracing) collect() {
	tick := time.NewTicker(ringInterval)
	defer tick.Stop()
	for {
		select {
		case <-tr.quit:
			return
		case <-tick.C:
		}
		tr.replay.Lock()
		err := tr.Collected(nil)
		tr.replay.Unlock()
		if err != nil {
			tr.replay.Interrupt()
			return
		}
	}
}

// Collected takes the accesses seen by back ends that do not stop threads. stands reports whether
// a thread is stopped; nil: none is. An error is kept for the thread that the watchdog wakes.
func (tr *Tracing) Collected(stands func(tid int) bool) error {
	switch {
	case tr.Err != nil:
	case tr.kernel != nil:
		tr.Err = tr.kernel.drain(stands)
	case tr.probes != nil && len(tr.asked.Inspected) == 0:
		tr.Err = tr.probes.drain(nil)
	}
	return tr.Err
}

// Settle reports the accesses so far, with all threads stopped: none of them is a part of what follows.
func (tr *Tracing) Settle() error {
	if err := tr.Collected(func(int) bool { return true }); err != nil {
		return err
	}
	return tr.flush()
}

// Arm traces the accesses of one more thread. first: if the back end cannot trace it and was not
// requested by name, another one is used.
func (tr *Tracing) Arm(t *tracee.Thread, first bool) error {
	if p := tr.probes; p != nil {
		return p.arm(t)
	}
	if tr.pages != nil {
		return nil
	}
	if k := tr.kernel; k != nil {
		err := k.arm(t.TID)
		var cannot *UnsupportedError
		if err == nil || !first || tr.asked.Backend != "" || !errors.As(err, &cannot) {
			return err
		}
		k.close()
		tr.kernel = nil
		tr.watchByStops()
	}
	return tr.process.SetBreakpoints(t.TID)
}

// onlyWatch returns the value of DR6 after a trap of a debug register, if the thread uses only
// one; otherwise 0.
func (tr *Tracing) onlyWatch(t *tracee.Thread, s *tracee.SignalStop) uint64 {
	taken := tr.process.WatchRegisters.Taken
	if s.Code != tracee.TrapHardware && s.Code != tracee.TrapBreakpoint || bits.OnesCount8(taken) != 1 || tr.breakpoints.UsesRegister(t) {
		return 0
	}
	return uint64(taken)
}

// LostTrap reports whether a SIGTRAP that nothing else explains is a watch's whose debug status
// was lost (tracee.IsStepTrap): the kernel then neither counts the access nor says which watch
// it was of. It counts as a lost hit. A program's own trap of this code is made by int1.
func (tr *Tracing) LostTrap(s *tracee.SignalStop) bool {
	const int1 = 0xf1
	if tr == nil || s.Code != tracee.TrapBreakpoint || len(tr.watches) == 0 || tr.probes != nil || tr.pages != nil {
		return false
	}
	var before [1]byte
	if _, err := tr.process.Memory.ReadAt(before[:], int64(s.Regs.Rip)-1); err != nil || before[0] == int1 {
		return false
	}
	tr.strays++
	return true
}

// WatchTrap handles a SIGTRAP that may be from a watch. other: it may also have another cause.
func (tr *Tracing) WatchTrap(t *tracee.Thread, s *tracee.SignalStop) (hit, other bool, err error) {
	if tr.process.WatchRegisters.Taken == 0 || s.Code != tracee.TrapHardware && !tracee.IsStepTrap(s.Code) {
		return false, true, nil
	}
	status := tr.onlyWatch(t, s)
	if status == 0 {
		if status, err = ptrace.GetDebug(t.TID, 6); err != nil {
			return false, true, err
		}
	}
	const all = 1<<tracee.DebugRegisters - 1
	hits := uint8(status) & tr.process.WatchRegisters.Taken
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
