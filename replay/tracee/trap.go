package tracee

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// codeTraps stop threads at instructions by int3, where debug registers do not (ptrace.ErrNoDebugRegisters).
// Other parts see the stops that debug registers would make: before the instruction, with the
// code TrapHardware, of the threads alone that want to stop there, and not of a thread that is
// resumed there with FlagResume. Code that the program itself writes over a trap loses it.
type codeTraps struct {
	memory *Memory
	// wanted are the threads that stop at an instruction. Some of these have no trap yet, as no
	// memory is mapped there.
	wanted map[uint64]map[int]bool
}

// UseTraps makes the process's breakpoints int3 instructions in place of debug registers.
func (p *Process) UseTraps() {
	p.traps = &codeTraps{memory: p.Memory, wanted: map[uint64]map[int]bool{}}
}

// SetBreakpoints replaces the breakpoints of a stopped thread: it stops before it executes the
// instructions at the pcs. The process's watches that use debug registers stay as they are.
func (p *Process) SetBreakpoints(tid int, pcs ...uint64) error {
	if p.traps == nil {
		return setDebug(tid, &p.WatchRegisters, pcs...)
	}
	return p.traps.set(tid, pcs)
}

func (c *codeTraps) set(tid int, pcs []uint64) error {
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
	return c.place()
}

// place places the traps whose memory is mapped.
func (c *codeTraps) place() error {
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

// PlaceTraps places the breakpoints at code that has been mapped since they were set.
func (p *Process) PlaceTraps() error {
	if p.traps == nil {
		return nil
	}
	return p.traps.place()
}

// RemoveTraps removes all of them, as before a debugger takes over.
func (p *Process) RemoveTraps() error {
	if p.traps == nil {
		return nil
	}
	clear(p.traps.wanted)
	for len(p.Memory.traps) > 0 {
		if err := p.Memory.removeTrap(p.Memory.traps[0].addr); err != nil {
			return err
		}
	}
	return nil
}

// AdoptMemory makes the memory of a child that the process has forked the process's own. The
// traps that the child has inherited are removed from it.
func (p *Process) AdoptMemory(child *Memory) error {
	inherited := p.Memory.traps
	p.Memory.Close()
	p.Memory = child
	if p.traps == nil {
		return nil
	}
	p.UseTraps()
	for _, x := range inherited {
		if x.lifted {
			continue
		}
		if _, err := child.Memory.WriteAt([]byte{x.value}, int64(x.addr)); err != nil {
			return err
		}
	}
	return nil
}

// ForgetThread is called for a thread that has ended.
func (p *Process) ForgetThread(tid int) error {
	if p.traps == nil {
		return nil
	}
	return p.traps.set(tid, nil)
}

// AtTrap handles a SIGTRAP that may be a breakpoint's. If it is, the stop becomes the one that a
// debug register makes: before the instruction, with FlagResume set. others: it is a breakpoint
// of other threads only, so this one resumes.
func (p *Process) AtTrap(t *Thread, s *SignalStop) (others bool, err error) {
	if p.traps == nil || s.Signal != unix.SIGTRAP || s.Code != FromKernel {
		return false, nil
	}
	pc := s.Regs.Rip - 1
	if _, placed := p.Memory.findTrap(pc); !placed || t.passed == pc {
		return false, nil // an int3 that the trap covers
	}
	s.Regs.Rip, s.Regs.Orig_rax = pc, ^uint64(0)
	s.Regs.Eflags |= FlagResume
	if err := ptrace.SetRegisters(t.TID, &s.Regs); err != nil {
		return false, err
	}
	s.Code = TrapHardware
	return !p.traps.wanted[pc][t.TID], nil
}

// Lifted calls do while no trap is at the next instruction of a stopped thread.
func (p *Process) Lifted(tid int, do func() error) error {
	if p.traps == nil || len(p.Memory.traps) == 0 {
		return do()
	}
	regs, err := ptrace.GetRegisters(tid)
	if err != nil {
		return err
	}
	if err := p.Memory.liftTrap(regs.Rip); err != nil {
		return err
	}
	return errors.Join(do(), p.Memory.lowerTrap(regs.Rip))
}

// StepQuietly is ptrace.StepQuietly for a thread that may be at a breakpoint.
func (p *Process) StepQuietly(tid int) (stop ptrace.Stop, err error) {
	err = p.Lifted(tid, func() error {
		stop, err = ptrace.StepQuietly(tid)
		return err
	})
	return stop, err
}

// StepOnce is ptrace.Step and ptrace.WaitFor for a thread that may be at a breakpoint.
func (p *Process) StepOnce(tid int) (stop ptrace.Stop, err error) {
	err = p.Lifted(tid, func() error {
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

// Resume resumes a stopped thread by ptrace.Cont, or for one instruction by ptrace.Step. With FlagResume, the
// thread does not stop at a breakpoint at its pc.
func (p *Process) Resume(t *Thread, signal syscall.Signal, steps bool) error {
	by := Resumption(ptrace.Cont)
	if x := p.Protection; x != nil {
		var err error
		if signal, err = x.Protect(t, signal); err != nil {
			return err
		}
		by = ptrace.ContToCall
	}
	if !p.Started {
		by = ptrace.ContToCall
	} else if steps {
		by = ptrace.Step
	}
	if p.traps == nil || len(p.Memory.traps) == 0 {
		return by(t.TID, signal)
	}
	if err := p.Memory.lowerTraps(); err != nil {
		return err
	}
	if x := t.passing.pc; x != 0 { // it was interrupted
		t.passing = passing{}
		if err := p.Memory.lowerTrap(x); err != nil {
			return err
		}
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if _, trap := p.Memory.findTrap(regs.Rip); !trap || regs.Eflags&FlagResume == 0 || signal != 0 {
		return by(t.TID, signal)
	}
	x := passing{pc: regs.Rip}
	if !steps {
		x.then, by = by, ptrace.Step
		if inst := p.Instruction(regs.Rip); inst != nil && inst.Repeats() {
			x.end, by = regs.Rip+uint64(inst.Len), ptrace.Cont
			if err := p.Memory.placeTrap(x.end); err != nil {
				return err
			}
		}
	}
	if err := p.Memory.liftTrap(x.pc); err != nil {
		return err
	}
	t.passing = x
	return by(t.TID, signal)
}

// Passed is called first for each stop of a thread. continues: the thread had to execute the
// instruction under a trap, has done so, and was resumed.
func (p *Process) Passed(t *Thread, stop *ptrace.Stop) (continues bool, err error) {
	x := t.passing
	t.passing, t.passed = passing{}, x.pc
	if x.pc == 0 {
		return false, nil
	}
	if err := p.Memory.lowerTrap(x.pc); err != nil || stop.Kind == ptrace.Ended {
		return false, err
	}
	if x.end != 0 {
		return p.repeated(t, stop, &x)
	}
	if own, err := EndsStep(stop); err != nil || !own || x.then == nil {
		return false, err
	}
	return true, x.then(t.TID, 0)
}

// repeated handles the stop of a thread that was to execute all repetitions of an instruction.
func (p *Process) repeated(t *Thread, stop *ptrace.Stop, x *passing) (continues bool, err error) {
	if p.traps.wanted[x.end] == nil {
		defer func() { err = errors.Join(err, p.Memory.removeTrap(x.end)) }()
	}
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return false, nil
	}
	info, err := ptrace.GetSiginfo(t.TID)
	if err != nil || info.Code() != FromKernel {
		return false, err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || regs.Rip != x.end+1 || p.traps.wanted[x.end][t.TID] {
		return false, err // AtTrap handles it
	}
	regs.Rip, regs.Orig_rax = x.end, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return false, err
	}
	return true, p.Resume(t, 0, false)
}
