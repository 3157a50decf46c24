package replay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/siginfo"

	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
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
	process    *tracee.Process
	recordings *recorded.Recordings
	at         map[uint64][]Break
	placed     map[uint64]bool
	// stoppedAt is where a thread is stopped; 0: nowhere. The trap there is placed again when the instruction has been executed.
	stoppedAt uint64
	// unbroken were removed for a probe.
	unbroken []evidence.Addr
}

func newBreaks(p *tracee.Process, r *recorded.Recordings, list []Break) *breaks {
	b := &breaks{process: p, recordings: r, at: map[uint64][]Break{}, placed: map[uint64]bool{}}
	for _, x := range list {
		b.at[uint64(x.PC)] = append(b.at[uint64(x.PC)], x)
	}
	return b
}

var trapInstruction = []byte{tracee.Int3}

// AddBreak adds a break from now on.
func (s *Stopped) AddBreak(x Break) error {
	pc := uint64(x.PC)
	s.c.breaks.at[pc] = append(s.c.breaks.at[pc], x)
	return s.c.breaks.place()
}

// place installs the traps whose text is mapped: objects may be loaded later.
func (b *breaks) place() error {
	if !b.recordings.IsLast() {
		return nil
	}
	for pc, list := range b.at {
		if len(list) == 0 || b.placed[pc] || pc == b.stoppedAt {
			continue
		}
		if _, err := b.process.Memory.ReadAt(make([]byte, len(trapInstruction)), int64(pc)); err != nil {
			continue
		}
		if err := b.process.Memory.Replace(pc, trapInstruction); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
		b.placed[pc] = true
	}
	return nil
}

// giveWay removes breaks where a probe's jump is to be. The probe is for a place that threads may
// pass any number of times.
func (b *breaks) giveWay(w *patch.Window) error {
	for pc := range b.placed {
		if pc < w.Start || pc >= w.End && (w.Hop == 0 || pc < w.Hop || pc >= w.Hop+patch.JumpSize) {
			continue
		}
		if err := b.process.Memory.Restore(pc); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
		delete(b.placed, pc)
		b.at[pc] = nil
		b.unbroken = append(b.unbroken, evidence.Addr(pc))
	}
	return nil
}

// remove restores the program's text.
func (b *breaks) remove() error {
	if b.process.Detached {
		return nil
	}
	for pc := range b.placed {
		if err := b.process.Memory.Restore(pc); err != nil {
			return fmt.Errorf("replay: break at %#x: %w", pc, err)
		}
	}
	clear(b.placed)
	return nil
}

// fetched reports whether a fault is one of fetching the instruction itself.
func fetched(s *tracee.SignalStop) bool {
	info, ok := siginfo.Parse(s.Info[:])
	return ok && info.HasAddr && uint64(info.Addr) == s.Regs.Rip
}

// breakTrap handles the stop at a break.
func (c *controller) breakTrap(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	pc := s.Regs.Rip
	switch {
	case s.Signal == unix.SIGTRAP && s.Code == siginfo.Kernel:
		pc -= uint64(len(trapInstruction))
	case s.Signal == unix.SIGSEGV && c.breaks.placed[pc] && fetched(s): // a trap in memory that is not executable
	default:
		return false, nil
	}
	if _, known := c.breaks.at[pc]; !known {
		return false, nil
	}
	regs := s.Regs
	regs.Rip, regs.Orig_rax = pc, ^uint64(0)
	// A debug register for the same instruction has already seen this arrival.
	regs.Eflags |= ptrace.FlagResume
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return true, err
	}
	if !c.breaks.placed[pc] { // removed meanwhile
		return true, c.cont(t, 0)
	}
	c.watch.hits.Add(1) // it makes progress
	if err := c.StopAll(); err != nil || c.end != nil {
		return true, err
	}
	if err := c.Memory.Restore(pc); err != nil {
		return true, err
	}
	delete(c.breaks.placed, pc)
	c.breaks.stoppedAt = pc
	err := c.callBreaks(t, pc)
	if c.breaks.stoppedAt = 0; err != nil || c.end != nil {
		return true, err
	}
	if len(c.breaks.at[pc]) > 0 {
		if err := c.breaks.pass(t, pc); err != nil {
			return true, err
		}
	}
	return true, c.goOn()
}

// callBreaks calls the breaks at a pc. Once one of them has moved the thread from there, the rest
// are not called.
func (c *controller) callBreaks(t *tracee.Thread, pc uint64) error {
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
		regs, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return err
		}
		if regs.Rip != pc {
			left = append(left, list[i+1:]...)
			break
		}
	}
	c.breaks.at[pc] = append(left, c.breaks.at[pc][len(list):]...) // and those that were added meanwhile
	return nil
}

// pass executes the instruction under a trap, and restores the trap. Other stops that the
// instruction causes, by a fault or an access to a watched word, are handled when the threads
// resume.
func (b *breaks) pass(t *tracee.Thread, pc uint64) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if regs.Rip == pc {
		stop, err := b.executeBreak(t)
		if err != nil {
			return err
		}
		t.Deferred = stop
	}
	if err := b.process.Memory.Replace(pc, trapInstruction); err != nil {
		return err
	}
	b.placed[pc] = true
	return nil
}

// executeBreak executes one instruction. The stop is nil if it is only the step's.
func (b *breaks) executeBreak(t *tracee.Thread) (*ptrace.Stop, error) {
	stop, err := b.process.Traps.StepOnce(t.TID)
	if err != nil {
		return nil, err
	}
	if own, err := tracee.EndsStep(&stop); err != nil {
		return nil, err
	} else if !own {
		return &stop, nil
	}
	if b.process.WatchRegisters.Taken != 0 {
		status, err := ptrace.GetDebug(t.TID, 6)
		if err != nil {
			return nil, err
		}
		if uint8(status)&b.process.WatchRegisters.Taken != 0 {
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
	return storedBy(s.c.Process, &regs)
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
	stop, err := s.c.Traps.StepOnce(s.TID())
	if err == nil && (stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP) {
		err = fmt.Errorf("replay: the instruction at %v came to %v", s.Moment, stop)
	}
	return err
}

// SkipStore executes that instruction and restores the memory that it stores to. For a free
// replay.
func (s *Stopped) SkipStore() error { return undoStore(s) }

// KeepFreed has a call that frees an object of so many bytes leave it as it is (EditKeepFreed). The thread is at the first
// instruction of the called function. For a free replay.
func (s *Stopped) KeepFreed(size uint64) error { return keepFreed(s, size) }

// Pad increases the size in a call of the heap's function at whose first instruction the thread
// is. For a free replay.
func (s *Stopped) Pad(by uint64) error { return pad(s, by) }

// WriteMemory changes the process's memory. For a free replay.
func (s *Stopped) WriteMemory(addr evidence.Addr, p []byte) error {
	_, err := s.c.Memory.WriteAt(p, int64(addr))
	return err
}
