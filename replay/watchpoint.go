package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/ptrace"
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
}

// sighting is what a back end saw: a thread right behind an instruction that
// accessed watched words.
type sighting struct {
	watches uint8 // bit per watch
	// index is the thread's number in the recording; position, ordinal and inside
	// are control.consumed and what its struct dg_rthread has.
	index                     uint32
	position, ordinal, inside uint64
	regs                      ptrace.Registers
	// frame is what the thread had when it entered the engine; nil outside.
	frame *agent.RawFrame
	words [debugRegisters]uint64
	// valid: the word could be read; bit per watch.
	valid uint8
	// stack reads as much of the stack as there is.
	stack image.Memory
}

// checkWatches sees that there are registers for the watches.
func (o *Options) checkWatches() error {
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
func (c *controller) startTracing() {
	c.watchRegisters = newWatchRegisters(c.opts.Watches)
	c.tracing = &tracing{c: c, watches: c.opts.Watches, code: newCodeReader(c)}
	c.result.Backend = BackendPtrace
	for i := range c.opts.Watches {
		c.tracing.initial(i)
	}
}

func (c *controller) stopTracing() {
	if c.tracing != nil {
		c.tracing.code.close()
	}
}

// armWatches is for a new thread, before its first instruction.
func (c *controller) armWatches(t *thread) error {
	if len(c.opts.Watches) == 0 || !c.last() || t.watched {
		return nil
	}
	if c.tracing == nil {
		c.startTracing()
	}
	t.watched = true
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
	if c.tracing == nil || s.code != trapHardware && s.code != trapTrace && s.code != trapBreakpoint {
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
	if err := c.place(t, s); err != nil {
		return nil, err
	}
	if s.inside != 0 {
		f, err := readStruct[agent.RawFrame](c.memory, s.inside)
		if err != nil {
			return nil, err
		}
		s.frame = f
	}
	for i := range c.tracing.watches {
		if value, err := c.tracing.word(i); err == nil {
			s.words[i] = value
			s.valid |= 1 << i
		}
	}
	return s, nil
}

// place says how far the replay is. Before the engine has started there is one
// thread, without an event.
func (c *controller) place(t *thread, s *sighting) error {
	if c.control == 0 {
		s.index = 1
		return nil
	}
	if err := c.identify(t); errors.Is(err, errNoThread) {
		return c.newcomer(s)
	} else if err != nil {
		return err
	}
	s.index = t.index
	var p [8]byte
	if _, err := c.memory.ReadAt(p[:], int64(c.control+uint64(unsafe.Offsetof(agent.RawControl{}.Consumed)))); err != nil {
		return err
	}
	s.position = binary.LittleEndian.Uint64(p[:])
	// inside and ordinal follow each other.
	var q [16]byte
	if _, err := c.memory.ReadAt(q[:], int64(rthreadAddress(t.index)+uint64(unsafe.Offsetof(agent.RawRThread{}.Inside)))); err != nil {
		return err
	}
	s.inside, s.ordinal = binary.LittleEndian.Uint64(q[:]), binary.LittleEndian.Uint64(q[8:])
	return nil
}

// newcomer is for a thread that the engine does not know yet by its id: it is on
// its way to its first event, and known by its thread pointer.
func (c *controller) newcomer(s *sighting) error {
	control, err := c.readControl()
	if err != nil {
		return err
	}
	s.position = control.Consumed
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		if r, err := c.rthread(i); err == nil && r.State == agent.RStarting && r.ThreadPointer == s.regs.Fs_base {
			s.index = i
			return nil
		}
	}
	return fmt.Errorf("replay: a watched word was accessed by a thread that the engine does not know, at %#x", s.regs.Rip)
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
	if s.valid&(1<<watch) == 0 {
		return nil // not mapped (any more)
	}
	now, hit := s.words[watch], s.watches&(1<<watch) != 0
	if !tr.read[watch] {
		tr.known[watch], tr.read[watch] = now, true
		if hit {
			tr.known[watch] = tr.mapped(watch, now)
		}
	}
	before := tr.known[watch]
	tr.known[watch] = now
	if !hit && before == now {
		return nil
	}
	h := Hit{Watch: watch, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Old: before, New: now}
	if hit {
		tr.code.explain(s, &tr.watches[watch], &h)
	}
	if before != now && (!hit || h.Kind == evidence.CodeRead) {
		// Nothing that traps has written this: the kernel has, or the tracer.
		unseen := h
		unseen.PC, unseen.SP, unseen.Caller, unseen.Kind, unseen.By = 0, 0, 0, evidence.CodeWrite, evidence.ByCall
		if err := tr.emit(unseen, t); err != nil {
			return err
		}
		h.Old = now
	}
	if !hit {
		return nil
	}
	if h.By == evidence.ByCall && t != nil {
		h.New = tr.code.copied(s, &tr.watches[watch], now)
	}
	return tr.emit(h, t)
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
	s := &sighting{}
	if t := c.end.thread; t != nil && c.control != 0 {
		if err := c.place(t, s); err != nil && !errors.Is(err, errNoThread) {
			return err
		}
	}
	for i := range tr.watches {
		if value, err := tr.word(i); err == nil {
			s.words[i] = value
			s.valid |= 1 << i
		}
		if err := tr.takeOne(s, i, nil); err != nil {
			return err
		}
	}
	return tr.flush()
}
