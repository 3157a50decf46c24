package replay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
)

// Break is an instruction of the program at which a replay stops each thread that reaches it, each
// time. A free replay that has left its log has no Moments to name. Any number of breaks may be at
// one PC; they are called in their order.
type Break struct {
	PC evidence.Addr
	// Do is called with all threads stopped, before the instruction is executed. ErrBreakOver
	// removes the break; any other error ends the replay.
	Do func(*Stopped) error
	// Changes: Do makes changes, so the process need not end as recorded.
	Changes bool
}

// ErrBreakOver is returned by a Break.Do that is not to be called again.
var ErrBreakOver = errors.New("replay: the break is not needed any more")

// breaks are the traps in the program's text for FreeRequest.Breaks. A trap serves all threads,
// including new ones, whereas debug registers are few and belong to one thread.
type breaks struct {
	at     map[uint64][]Break
	placed map[uint64]bool
}

func newBreaks(list []Break) *breaks {
	b := &breaks{at: map[uint64][]Break{}, placed: map[uint64]bool{}}
	for _, x := range list {
		b.at[uint64(x.PC)] = append(b.at[uint64(x.PC)], x)
	}
	return b
}

var trapInstruction = []byte{0xcc} // int3

// AddBreak adds a break from now on.
func (s *Stopped) AddBreak(x Break) error {
	if s.c.breaks == nil {
		s.c.breaks = newBreaks(nil)
	}
	pc := uint64(x.PC)
	s.c.breaks.at[pc] = append(s.c.breaks.at[pc], x)
	return s.c.placeBreaks()
}

// placeBreaks puts the traps there for which there is text by now: objects may be
// loaded later.
func (c *controller) placeBreaks() error {
	if c.breaks == nil || !c.last() {
		return nil
	}
	for pc, list := range c.breaks.at {
		if len(list) == 0 || c.breaks.placed[pc] {
			continue
		}
		if _, err := c.memory.ReadAt(make([]byte, len(trapInstruction)), int64(pc)); err != nil {
			continue
		}
		if err := c.memory.replace(pc, trapInstruction); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
		c.breaks.placed[pc] = true
	}
	return nil
}

// breaksGiveWay takes breaks back where a probe's jump is to be: the probe is for a
// place that threads may pass any number of times.
func (c *controller) breaksGiveWay(w *window) error {
	if c.breaks == nil {
		return nil
	}
	for pc := range c.breaks.placed {
		if pc < w.start || pc >= w.end && (w.hop == 0 || pc < w.hop || pc >= w.hop+probeJump) {
			continue
		}
		if err := c.memory.restore(pc); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
		delete(c.breaks.placed, pc)
		c.breaks.at[pc] = nil
		c.result.Unbroken = append(c.result.Unbroken, evidence.Addr(pc))
	}
	return nil
}

// removeBreaks leaves the text as the program has it.
func (c *controller) removeBreaks() error {
	if c.breaks == nil || c.detached {
		return nil
	}
	for pc := range c.breaks.placed {
		if err := c.memory.restore(pc); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
	}
	clear(c.breaks.placed)
	return nil
}

// breakTrap handles the stop at a break.
func (c *controller) breakTrap(t *thread, s *signalStop) (bool, error) {
	if c.breaks == nil || s.signal != unix.SIGTRAP || s.code != siKernel {
		return false, nil
	}
	pc := s.regs.Rip - uint64(len(trapInstruction))
	if _, known := c.breaks.at[pc]; !known {
		return false, nil
	}
	regs := s.regs
	regs.Rip, regs.Orig_rax = pc, ^uint64(0)
	// A debug register for the same instruction has already seen this arrival.
	regs.Eflags |= flagResume
	if err := ptrace.SetRegisters(t.tid, &regs); err != nil {
		return true, err
	}
	if !c.breaks.placed[pc] { // taken back meanwhile
		return true, c.cont(t, 0)
	}
	c.watch.hits.Add(1) // it comes on
	if err := c.stopAll(); err != nil || c.end != nil {
		return true, err
	}
	if err := c.memory.restore(pc); err != nil {
		return true, err
	}
	delete(c.breaks.placed, pc)
	if err := c.callBreaks(t, pc); err != nil || c.end != nil {
		return true, err
	}
	if len(c.breaks.at[pc]) > 0 {
		if err := c.passBreak(t, pc); err != nil {
			return true, err
		}
	}
	return true, c.goOn()
}

// callBreaks calls the breaks at a pc. Once one of them has moved the thread from there, the rest
// are not called.
func (c *controller) callBreaks(t *thread, pc uint64) error {
	c.watch.pause()
	defer c.watch.resume()
	c.attempt.hooked = true
	s, err := c.stopped(t)
	if err != nil {
		return err
	}
	defer s.close()
	s.Moment.PC = evidence.Addr(pc)
	var left []Break
	list := c.breaks.at[pc]
	for i, x := range list {
		err := x.Do(s)
		if errors.Is(err, ErrEnough) {
			c.end = &end{kind: EndMoment, thread: t}
			return nil
		}
		if err != nil && !errors.Is(err, ErrBreakOver) {
			return err
		}
		if err == nil {
			left = append(left, x)
		}
		regs, err := ptrace.GetRegisters(t.tid)
		if err != nil {
			return err
		}
		if regs.Rip != pc {
			left = append(left, list[i+1:]...)
			break
		}
	}
	c.breaks.at[pc] = left
	return nil
}

// passBreak executes the instruction under a trap, and puts the trap back. What else
// comes of the instruction, a fault or an access to a watched word, is dealt with when
// the threads go on.
func (c *controller) passBreak(t *thread, pc uint64) error {
	regs, err := ptrace.GetRegisters(t.tid)
	if err != nil {
		return err
	}
	if regs.Rip == pc {
		stop, err := c.stepBreak(t)
		if err != nil {
			return err
		}
		t.deferred = stop
	}
	if err := c.memory.replace(pc, trapInstruction); err != nil {
		return err
	}
	c.breaks.placed[pc] = true
	return nil
}

// stepBreak executes one instruction. The stop is nil if it is only the step's.
func (c *controller) stepBreak(t *thread) (*ptrace.Stop, error) {
	if err := ptrace.Step(t.tid, 0); err != nil {
		return nil, err
	}
	stop, err := ptrace.WaitFor(t.tid)
	if err != nil {
		return nil, err
	}
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return &stop, nil
	}
	info, err := ptrace.GetSiginfo(t.tid)
	if err != nil {
		return nil, err
	}
	if siCode(&info) != trapTrace {
		return &stop, nil
	}
	if c.watchRegisters.taken != 0 {
		status, err := ptrace.GetDebug(t.tid, 6)
		if err != nil {
			return nil, err
		}
		if uint8(status)&c.watchRegisters.taken != 0 {
			return &stop, nil
		}
	}
	return nil, nil
}

// Stores returns the address and size of the memory that the thread's next instruction stores to.
// It is an error if it does not store exactly once.
func (s *Stopped) Stores() (evidence.Addr, uint64, error) {
	regs, err := ptrace.GetRegisters(s.TID())
	if err != nil {
		return 0, 0, err
	}
	code := newCodeReader(s.c)
	defer code.close()
	return code.stores(&regs)
}

// Stored executes that instruction, and returns the address, value and size of its store, up to 8
// bytes. For a free replay.
func (s *Stopped) Stored() (addr evidence.Addr, value uint64, size int, err error) {
	addr, n, err := s.Stores()
	if err != nil {
		return 0, 0, 0, err
	}
	if n > 8 {
		return 0, 0, 0, fmt.Errorf("replay: the instruction at %v stores %d bytes", s.Moment, n)
	}
	if err := s.step(); err != nil {
		return 0, 0, 0, err
	}
	var word [8]byte
	if _, err := s.ReadMemory(addr, word[:n]); err != nil {
		return 0, 0, 0, fmt.Errorf("replay: the store at %v: %w", s.Moment, err)
	}
	return addr, le.Uint64(word[:]), int(n), nil
}

// step executes the thread's next instruction.
func (s *Stopped) step() error {
	if err := ptrace.Step(s.TID(), 0); err != nil {
		return err
	}
	stop, err := ptrace.WaitFor(s.TID())
	if err == nil && (stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP) {
		err = fmt.Errorf("replay: the instruction at %v came to %v", s.Moment, stop)
	}
	return err
}

// SkipStore executes that instruction and restores the memory that it stores to. For a free
// replay.
func (s *Stopped) SkipStore() error { return undoStore(s) }

// SkipCall returns 0 from the function at whose first instruction the thread is. For a free
// replay.
func (s *Stopped) SkipCall() error { return skipCall(s) }

// Pad increases the size in a call of the heap's function at whose first instruction the thread
// is. For a free replay.
func (s *Stopped) Pad(by uint64) error { return pad(s, by) }

// WriteMemory changes the process's memory. For a free replay.
func (s *Stopped) WriteMemory(addr evidence.Addr, p []byte) error {
	_, err := s.c.memory.WriteAt(p, int64(addr))
	return err
}
