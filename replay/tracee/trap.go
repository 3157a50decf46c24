package tracee

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/image/x86"
	"diagnose/internal/siginfo"
	"diagnose/replay/ptrace"
)

// Traps stop threads at instructions by int3, where debug registers do not (ptrace.ErrNoDebugRegisters).
// Other parts see the stops that debug registers would make: before the instruction, with the
// code TrapHardware, of the threads alone that want to stop there, and not of a thread that is
// resumed there with ptrace.FlagResume. Code that the program itself writes over a trap loses it.
//
// Where debug registers stop threads, *Traps is nil, and its methods do what there is to do without.
type Traps struct {
	process *Process
	memory  *Memory
	// wanted are the threads that stop at an instruction. Some of these have no trap yet, as no
	// memory is mapped there.
	wanted map[uint64]map[int]bool
}

func newTraps(p *Process, m *Memory) *Traps {
	return &Traps{process: p, memory: m, wanted: map[uint64]map[int]bool{}}
}

// set replaces the breakpoints of a thread.
func (c *Traps) set(tid int, pcs []uint64) error {
	for pc, threads := range c.wanted {
		if !threads[tid] || slices.Contains(pcs, pc) {
			continue
		}
		if delete(threads, tid); len(threads) > 0 {
			continue
		}
		delete(c.wanted, pc)
		if err := c.memory.removeTrap(pc); err != nil {
			return err
		}
	}
	for _, pc := range pcs {
		if c.wanted[pc] == nil {
			c.wanted[pc] = map[int]bool{}
		}
		c.wanted[pc][tid] = true
	}
	return c.Place()
}

// Place places the traps at code that has been mapped since they were set.
func (c *Traps) Place() error {
	if c == nil {
		return nil
	}
	for pc := range c.wanted {
		if _, placed := c.memory.findTrap(pc); placed {
			continue
		}
		if err := c.memory.placeTrap(pc); err != nil && c.memory.Mapped(pc) {
			return err
		}
	}
	return nil
}

// Remove removes all of them, as before a debugger takes over.
func (c *Traps) Remove() error {
	if c == nil {
		return nil
	}
	clear(c.wanted)
	for len(c.memory.traps) > 0 {
		if err := c.memory.removeTrap(c.memory.traps[0].addr); err != nil {
			return err
		}
	}
	return nil
}

// inherited returns the traps of a child that the process has forked, without those that the
// child's memory has inherited.
func (c *Traps) inherited(child *Memory) (*Traps, error) {
	if c == nil {
		return nil, nil
	}
	for _, x := range c.memory.traps {
		if x.lifted {
			continue
		}
		if _, err := child.Memory.WriteAt([]byte{x.value}, int64(x.addr)); err != nil {
			return nil, err
		}
	}
	return newTraps(c.process, child), nil
}

// Forget is called for a thread that has ended.
func (c *Traps) Forget(tid int) error {
	if c == nil {
		return nil
	}
	return c.set(tid, nil)
}

// AtTrap handles a SIGTRAP that may be a breakpoint's. If it is, the stop becomes the one that a
// debug register makes: before the instruction, with ptrace.FlagResume set. others: it is a breakpoint
// of other threads only, or was removed before this stop was handled, so this thread resumes.
func (c *Traps) AtTrap(t *Thread, s *SignalStop) (others bool, err error) {
	if c == nil || s.Signal != unix.SIGTRAP || s.Code != siginfo.Kernel {
		return false, nil
	}
	pc := s.Regs.Rip - 1
	if t.passed == pc {
		return false, nil // an int3 that the trap covers
	}
	if _, placed := c.memory.findTrap(pc); !placed {
		if removed, err := c.removed(pc); err != nil || !removed {
			return false, err
		}
	}
	s.Regs.Rip, s.Regs.Orig_rax = pc, ^uint64(0)
	s.Regs.Eflags |= ptrace.FlagResume
	if err := ptrace.SetRegisters(t.TID, &s.Regs); err != nil {
		return false, err
	}
	s.Code = TrapHardware
	return !c.wanted[pc][t.TID], nil
}

// removed reports whether the int3 at which a thread has stopped is in memory no more: not in one byte, nor in two.
func (c *Traps) removed(pc uint64) (bool, error) {
	var has [2]byte
	if _, err := c.memory.ReadPlaced(has[:], int64(pc-1)); err != nil {
		return false, err
	}
	return has[1] != Int3 && has != [2]byte{0xcd, 3}, nil
}

// alone lifts the trap at an address and calls do, while no other thread runs that is to stop there: it would run past.
func (c *Traps) alone(tid int, pc uint64, do func() error) error {
	var held []*Thread
	for other := range c.wanted[pc] {
		t := c.process.Threads[other]
		if other == tid || t == nil {
			continue
		}
		if stopped, err := c.process.interrupt(t); err != nil {
			return err
		} else if stopped {
			held = append(held, t)
		}
	}
	if err := c.memory.liftTrap(pc); err != nil {
		return err
	}
	err := errors.Join(do(), c.memory.lowerTrap(pc))
	for _, t := range held {
		if e := t.resumption(t.TID, 0); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Lifted calls do while no trap is at the next instruction of a stopped thread.
func (c *Traps) Lifted(tid int, do func() error) error {
	if c == nil || len(c.memory.traps) == 0 {
		return do()
	}
	regs, err := ptrace.GetRegisters(tid)
	if err != nil {
		return err
	}
	if _, placed := c.memory.findTrap(regs.Rip); !placed {
		return do()
	}
	return c.alone(tid, regs.Rip, do)
}

// StepQuietly is ptrace.StepQuietly for a thread that may be at a breakpoint.
func (c *Traps) StepQuietly(tid int) (stop ptrace.Stop, err error) {
	err = c.Lifted(tid, func() error {
		stop, err = ptrace.StepQuietly(tid)
		return err
	})
	return stop, err
}

// StepUnlessStopped is StepQuietly, but a thread that has not yet stopped at its breakpoint there
// stops at it.
func (c *Traps) StepUnlessStopped(tid int) (ptrace.Stop, error) {
	if c != nil {
		regs, err := ptrace.GetRegisters(tid)
		if err != nil {
			return ptrace.Stop{}, err
		}
		if c.wanted[regs.Rip][tid] && regs.Eflags&ptrace.FlagResume == 0 {
			return ptrace.StepQuietly(tid)
		}
	}
	return c.StepQuietly(tid)
}

// StepOnce is ptrace.Step and ptrace.WaitFor for a thread that may be at a breakpoint.
func (c *Traps) StepOnce(tid int) (stop ptrace.Stop, err error) {
	err = c.Lifted(tid, func() error {
		if err := ptrace.Step(tid, 0); err != nil {
			return err
		}
		stop, err = ptrace.WaitFor(tid)
		return err
	})
	return stop, err
}

// Resumption is how a stopped thread resumes.
type Resumption func(tid int, signal syscall.Signal) error

// passing is the execution of the instruction under a trap by a thread that has stopped there.
type passing struct {
	pc uint64 // 0: there is none
	// end is the address after an instruction that repeats, with a trap; 0: it is stepped.
	end uint64
	// then resumes the thread after that; nil: it was to execute this instruction alone.
	then Resumption
}

// resume resumes a stopped thread by a resumption; steps: for one instruction. With ptrace.FlagResume, the
// thread does not stop at a trap at its pc.
func (c *Traps) resume(t *Thread, by Resumption, signal syscall.Signal, steps bool) error {
	t.resumption = by
	if c == nil || len(c.memory.traps) == 0 {
		return by(t.TID, signal)
	}
	if err := c.memory.lowerTraps(); err != nil {
		return err
	}
	if x := t.passing.pc; x != 0 { // it was interrupted
		t.passing = passing{}
		if err := c.memory.lowerTrap(x); err != nil {
			return err
		}
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if _, trap := c.memory.findTrap(regs.Rip); !trap || regs.Eflags&ptrace.FlagResume == 0 || signal != 0 {
		return by(t.TID, signal)
	}
	return c.pass(t, regs.Rip, by, steps)
}

// pass makes a stopped thread execute the instruction under a trap. What Passed does then, resume it unless it
// steps, is for when its stop is handled (Process.Queued).
func (c *Traps) pass(t *Thread, pc uint64, by Resumption, steps bool) error {
	x := passing{pc: pc}
	inst := c.memory.placedInstruction(pc)
	if !steps {
		x.then, by = by, ptrace.Step
		// A jump that Replace has put there is passed by one step, and hides the address after the
		// program's instruction.
		if inst != nil && inst.Repeats() {
			x.end, by = pc+uint64(inst.Len), ptrace.Cont
			if err := c.memory.placeTrap(x.end); err != nil {
				return err
			}
		}
	}
	t.passing = x
	if inst != nil && inst.Flow == x86.FlowSyscall {
		// It may wait for other threads.
		if err := c.memory.liftTrap(pc); err != nil {
			return err
		}
		return by(t.TID, 0)
	}
	return c.alone(t.TID, pc, func() error {
		if err := by(t.TID, 0); err != nil {
			return err
		}
		stop, err := ptrace.WaitFor(t.TID)
		if err == nil {
			c.process.queue(stop)
		}
		return err
	})
}

// Passed is called first for each stop of a thread. continues: the thread had to execute the
// instruction under a trap, has done so, and was resumed.
func (c *Traps) Passed(t *Thread, stop *ptrace.Stop) (continues bool, err error) {
	x := t.passing
	t.passing, t.passed = passing{}, x.pc
	if x.pc == 0 {
		return false, nil
	}
	if err := c.memory.lowerTrap(x.pc); err != nil || stop.Kind == ptrace.Ended {
		return false, err
	}
	if x.end != 0 {
		return c.repeated(t, stop, &x)
	}
	if own, err := EndsStep(stop); err != nil || !own || x.then == nil {
		return false, err
	}
	return true, x.then(t.TID, 0)
}

// repeated handles the stop of a thread that was to execute all repetitions of an instruction.
func (c *Traps) repeated(t *Thread, stop *ptrace.Stop, x *passing) (continues bool, err error) {
	if c.wanted[x.end] == nil {
		if err := c.memory.removeTrap(x.end); err != nil {
			return false, err
		}
	}
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return false, nil
	}
	info, err := ptrace.GetSiginfo(t.TID)
	if err != nil || info.Code() != siginfo.Kernel {
		return false, err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || regs.Rip != x.end+1 || c.wanted[x.end][t.TID] {
		return false, err // AtTrap handles it
	}
	regs.Rip, regs.Orig_rax = x.end, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return false, err
	}
	return true, c.resume(t, x.then, 0, false)
}
