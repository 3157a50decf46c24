package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/ptrace"
	"diagnose/internal/x86"
)

// tracing makes Hits of what a back end saw of the watches.
type tracing struct {
	c       *controller
	watches []Watch
	// known are the words as they were after the last hit of any; which of them
	// were ever read.
	known [debugRegisters]uint64
	read  [debugRegisters]bool
	code  *codeReader
	// pending is the last hit if it is a system call's, which copies byte by
	// byte: what belongs to it may follow.
	pending *Hit
	number  uint64
	buffer  [8*debugRegisters + lockBytes*MostLocks]byte
	// kernel is the back end that does not stop threads; nil: another.
	kernel *kernelWatches
	quit   chan struct{}
	err    error
}

// sighting is what a back end saw: a thread right behind an instruction that
// accessed watched words.
type sighting struct {
	watches uint8 // bit per watch
	// index is the thread's number in the recording; position, ordinal and inside
	// are control.consumed and what its struct dg_rthread has.
	index                     uint32
	position, ordinal, inside uint64
	tid                       uint32 // the recorded one
	held                      uint64
	regs                      ptrace.Registers
	// frame is what the thread had when it entered the engine; nil outside.
	frame *agent.RawFrame
	words [debugRegisters]uint64
	// valid: the word could be read; bit per watch.
	valid uint8
	// thread is the kernel's id, of back ends that do not stop it.
	thread int
	// stack reads as much of the stack as there is.
	stack image.Memory
}

// checkWatches sees that there are registers for the watches.
func (o *Options) checkWatches() error {
	if len(o.Locks) > MostLocks {
		return inputf("replay: %d locks to be looked at, %d can be", len(o.Locks), MostLocks)
	}
	most := debugRegisters
	if len(o.Hooks) > 0 {
		most--
	}
	if len(o.Watches) > most {
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
	tr := &tracing{c: c, watches: c.opts.Watches, code: newCodeReader(c), quit: make(chan struct{})}
	c.tracing = tr
	for i := range c.opts.Watches {
		tr.initial(i)
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

// watchByStops is the back end that works wherever processes can be traced.
func (c *controller) watchByStops() {
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
}

// collect empties the kernel's ring while the process runs.
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
		err := c.tracing.collected(func(int) bool { return false })
		c.mu.Unlock()
		if err != nil {
			c.watch.rouse(wakeHits)
			return
		}
	}
}

// collected takes what back ends saw that do not stop threads. An error is kept,
// for whoever the watchdog wakes.
func (tr *tracing) collected(stands func(tid int) bool) error {
	if tr.kernel == nil || tr.err != nil {
		return tr.err
	}
	tr.err = tr.kernel.drain(stands)
	return tr.err
}

// armWatches is for a new thread, before its first instruction.
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

// initial reads a word before anything was seen of it. Memory that is not mapped
// yet is filled when it is.
func (tr *tracing) initial(watch int) {
	if value, err := tr.word(watch); err == nil {
		tr.known[watch], tr.read[watch] = value, true
	}
}

func (tr *tracing) word(watch int) (uint64, error) {
	var p [8]byte
	w := &tr.watches[watch]
	_, err := tr.c.memory.ReadAt(p[:w.Size], int64(w.Addr))
	return binary.LittleEndian.Uint64(p[:]), err
}

const (
	trapTrace      = 2 // TRAP_TRACE
	trapBreakpoint = 1 // TRAP_BRKPT
	trapHardware   = 4 // TRAP_HWBKPT
)

// watchTrap looks whether a SIGTRAP is of a watch. other says that it may be
// something else's as well.
func (c *controller) watchTrap(t *thread, s *signalStop) (hit, other bool, err error) {
	if c.tracing == nil || c.tracing.kernel != nil || s.code != trapHardware && s.code != trapTrace && s.code != trapBreakpoint {
		return false, true, nil
	}
	status, err := ptrace.GetDebug(t.tid, 6)
	if err != nil {
		return false, true, err
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

// see reads what there is to know of a thread that a watch stopped.
func (c *controller) see(t *thread, regs *ptrace.Registers) (*sighting, error) {
	s := &sighting{regs: *regs, stack: c, index: t.index}
	if c.control == 0 {
		s.index = 1 // before the engine has started there is one thread, without an event
	} else if err := c.identify(t); errors.Is(err, errNoThread) {
		if err := c.newcomer(s, t.tid); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	s.index = max(s.index, t.index)
	if err := c.tracing.look(s, t.index != 0); err != nil {
		return nil, err
	}
	if s.inside == 0 {
		return s, nil
	}
	f, err := readStruct[agent.RawFrame](c.memory, s.inside)
	if err != nil {
		return nil, err
	}
	s.frame = f
	return s, nil
}

// Where what is looked at lies in the engine's structures.
const (
	consumedOffset = uint64(unsafe.Offsetof(agent.RawControl{}.Consumed))
	threadBytes    = uint64(unsafe.Offsetof(agent.RawRThread{}.Ordinal)) + 8
	lockBytes      = 4
)

// look reads the watched words, the locks, and how far the replay is.
func (tr *tracing) look(s *sighting, known bool) error {
	var pieces []wanted
	for i, w := range tr.watches {
		pieces = append(pieces, wanted{addr: uint64(w.Addr), size: uint64(w.Size), into: tr.buffer[8*i:]})
	}
	locks := tr.buffer[8*debugRegisters:]
	for i, l := range tr.c.opts.Locks {
		pieces = append(pieces, wanted{addr: uint64(l.Addr), size: lockBytes, into: locks[lockBytes*i:]})
	}
	var consumed [8]byte
	var slot [threadBytes]byte
	if known {
		pieces = append(pieces, wanted{addr: tr.c.control + consumedOffset, size: 8, into: consumed[:]},
			wanted{addr: rthreadAddress(s.index), size: threadBytes, into: slot[:]})
	}
	have := tr.gather(pieces)
	if known {
		if n := len(pieces); !have[n-1] || !have[n-2] {
			return fmt.Errorf("replay: what the engine knows of thread %d cannot be read", s.index)
		}
		var r agent.RawRThread
		s.tid = binary.LittleEndian.Uint32(slot[unsafe.Offsetof(r.TID):])
		s.inside = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Inside):])
		s.ordinal = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Ordinal):])
		s.position = binary.LittleEndian.Uint64(consumed[:])
	}
	for i, w := range tr.watches {
		if have[i] {
			s.valid |= 1 << i
			s.words[i] = binary.LittleEndian.Uint64(tr.buffer[8*i:]) & (^uint64(0) >> (64 - 8*w.Size))
		}
	}
	for i, l := range tr.c.opts.Locks {
		word := binary.LittleEndian.Uint32(locks[lockBytes*i:])
		if have[len(tr.watches)+i] && word != 0 && (!l.Owner || word == s.tid) {
			s.held |= 1 << i
		}
	}
	return nil
}

// wanted is memory of the process that is wanted.
type wanted struct {
	addr, size uint64
	into       []byte
}

// gather reads pieces in one call, if all are there; have says which were.
func (tr *tracing) gather(pieces []wanted) (have []bool) {
	local, remote := make([]unix.Iovec, len(pieces)), make([]unix.RemoteIovec, len(pieces))
	total := 0
	have = make([]bool, len(pieces))
	for i, p := range pieces {
		local[i] = unix.Iovec{Base: &p.into[0], Len: p.size}
		remote[i] = unix.RemoteIovec{Base: uintptr(p.addr), Len: int(p.size)}
		total += int(p.size)
		have[i] = true
	}
	if n, err := unix.ProcessVMReadv(tr.c.pid, local, remote, 0); err == nil && n == total {
		return have
	}
	for i, p := range pieces {
		_, err := tr.c.memory.ReadAt(p.into[:p.size], int64(p.addr))
		have[i] = err == nil
	}
	return have
}

// newcomer is for a thread that the engine does not know yet by its id: the main
// thread while the engine starts, or one on its way to its first event, which is
// known by its thread pointer. What else there may be is thread 0.
func (c *controller) newcomer(s *sighting, tid int) error {
	control, err := c.readControl()
	if err != nil {
		return err
	}
	s.position = control.Consumed
	if tid == c.pid && s.position == 0 {
		s.index = 1
		return nil
	}
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		if r, err := c.rthread(i); err == nil && r.State == agent.RStarting && r.ThreadPointer == s.regs.Fs_base {
			s.index = i
			return nil
		}
	}
	return nil
}

// take makes hits of a sighting. t is nil where the thread has run on.
func (tr *tracing) take(s *sighting, t *thread) error {
	if tr.c.placer.compares(s.regs.Rip) {
		return nil // the comparison of a probe
	}
	for i := range tr.watches {
		if err := tr.takeOne(s, i, t); err != nil {
			return err
		}
	}
	return nil
}

func (tr *tracing) takeOne(s *sighting, watch int, t *thread) error {
	if s.watches&(1<<watch) == 0 {
		return nil
	}
	h := Hit{Watch: watch, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Held: s.held}
	changed := uint64(0)
	if s.valid&(1<<watch) != 0 {
		changed = s.words[watch] ^ tr.known[watch]
	}
	inst := tr.code.explain(s, &tr.watches[watch], changed, &h)
	now, err := tr.value(s, watch, inst)
	if err != nil {
		return err
	}
	if !tr.read[watch] {
		tr.known[watch], tr.read[watch] = tr.mapped(watch, now), true
	}
	h.Old, h.New = tr.known[watch], now
	tr.known[watch] = now
	if h.Kind == evidence.CodeUnknown && h.Old != h.New {
		h.Kind = evidence.CodeWrite
	}
	if h.Old != now && h.Kind == evidence.CodeRead {
		if err := tr.emit(unseenWrite(h), t); err != nil {
			return err
		}
		h.Old = now
	}
	if h.By == evidence.ByCall && t != nil {
		h.New = tr.code.copied(s, &tr.watches[watch], now)
	}
	return tr.emit(h, t)
}

// unseenWrite is for a change that nothing which traps has made: the kernel has,
// or the tracer.
func unseenWrite(h Hit) Hit {
	h.PC, h.SP, h.Caller, h.Kind, h.By = 0, 0, 0, evidence.CodeWrite, evidence.ByCall
	return h
}

// value is what the word has behind the access: as it was read, or, of back ends
// that need not read it, as the instruction tells.
func (tr *tracing) value(s *sighting, watch int, inst *x86.Inst) (uint64, error) {
	now := s.words[watch]
	if tr.kernel == nil {
		if s.valid&(1<<watch) == 0 {
			return tr.known[watch], nil // unmapped meanwhile
		}
		return now, nil
	}
	var told toldValue
	if tr.code.stretch(s.regs.Rip).repeat == nil {
		told = tellValue(inst, &s.regs, &tr.watches[watch], tr.known[watch])
	}
	switch {
	case s.valid&(1<<watch) != 0:
		if !tr.read[watch] {
			return now, nil
		}
		return now, tr.kernel.learn(s.regs.Rip, told, now)
	case told.class == codeTellsNothing:
		return 0, fmt.Errorf("replay: the value of a watched word behind the access at %#x is not known", s.regs.Rip)
	}
	return told.value, nil
}

// mapped is what a word was before its first access: memory that appeared since
// the last look is zero, unless it is a file's.
func (tr *tracing) mapped(watch int, now uint64) uint64 {
	maps, err := readMaps(tr.c.pid)
	if err != nil {
		return now
	}
	m := maps.at(uint64(tr.watches[watch].Addr))
	if m == nil {
		return now
	}
	if !strings.HasPrefix(m.path, "/") {
		return 0
	}
	f, err := os.Open(m.path)
	if err != nil {
		return now
	}
	defer f.Close()
	var p [8]byte
	w := &tr.watches[watch]
	if _, err := f.ReadAt(p[:w.Size], int64(uint64(w.Addr)-m.start+m.offset)); err != nil && err != io.EOF {
		return now
	}
	return binary.LittleEndian.Uint64(p[:])
}

// emit numbers a hit. What a system call copies byte by byte is one hit.
func (tr *tracing) emit(h Hit, t *thread) error {
	if p := tr.pending; p != nil {
		if h.By == evidence.ByCall && p.Watch == h.Watch && p.Thread == h.Thread && p.Ordinal == h.Ordinal && p.Kind == h.Kind && p.PC == h.PC {
			p.New = h.New
			return nil
		}
		if err := tr.flush(); err != nil {
			return err
		}
	}
	h.Number = tr.number
	tr.number++
	if err := tr.inspect(&h, t); err != nil {
		return err
	}
	if h.By == evidence.ByCall {
		tr.pending = &h
		return nil
	}
	return tr.deliver(&h)
}

func (tr *tracing) flush() error {
	p := tr.pending
	tr.pending = nil
	if p == nil {
		return nil
	}
	return tr.deliver(p)
}

func (tr *tracing) deliver(h *Hit) error {
	tr.c.result.Hits++
	tr.c.watch.hits.Add(1)
	if f := tr.c.opts.OnHit; f != nil {
		return f(h)
	}
	return nil
}

// inspect stops all threads for whoever wants to look at this hit.
func (tr *tracing) inspect(h *Hit, t *thread) error {
	look := tr.c.opts.Inspect[h.Number]
	if look == nil || t == nil {
		return nil
	}
	c := tr.c
	if err := c.stopAll(); err != nil {
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
	if err := look(h, s); errors.Is(err, ErrEnough) {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	} else if err != nil {
		return err
	}
	c.allStopped = true
	return nil
}

// resume lets a thread go on that a watch stopped, and the others, if somebody
// had them stopped to look.
func (c *controller) resume(t *thread) error {
	if !c.allStopped {
		return c.cont(t, 0)
	}
	c.allStopped = false
	return c.goOn()
}

// finishTracing is at the end of the replay: what changed behind the last hit is
// an access, too.
func (c *controller) finishTracing() error {
	tr := c.tracing
	if tr == nil || c.detached {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := tr.collected(func(int) bool { return true }); err != nil {
		return err
	}
	if tr.kernel != nil {
		var err error
		if c.result.Lost, err = tr.kernel.lostHits(); err != nil {
			return err
		}
	}
	s := &sighting{index: 1}
	if t := c.end.thread; t != nil {
		s.index = max(t.index, 1)
	}
	if err := tr.look(s, c.control != 0); err != nil {
		return err
	}
	for i := range tr.watches {
		if s.valid&(1<<i) == 0 || !tr.read[i] || s.words[i] == tr.known[i] {
			continue
		}
		h := Hit{Watch: i, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Held: s.held, Old: tr.known[i], New: s.words[i]}
		tr.known[i] = s.words[i]
		if err := tr.emit(unseenWrite(h), nil); err != nil {
			return err
		}
	}
	return tr.flush()
}
