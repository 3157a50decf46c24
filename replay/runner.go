package replay

import (
	"errors"
	"fmt"
	"syscall"

	"diagnose/agent"
	"diagnose/replay/breakpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
)

// runner resumes stopped threads of the process: by one instruction or at full speed, with a
// signal, or into the engine, where they wait.
type runner struct {
	process *tracee.Process
	placer  *breakpoint.Breakpoints
	// stepper steps the threads of a StepRequest; nil: nothing is stepped.
	stepper *step.Stepper
}

// cont lets a thread continue, by one instruction if it is stepped.
func (r *runner) cont(t *tracee.Thread, signal syscall.Signal) error {
	return r.contBy(t, signal, r.stepper.Steps(t))
}

// contBy lets a thread continue, by one instruction if steps is set.
func (r *runner) contBy(t *tracee.Thread, signal syscall.Signal, steps bool) error {
	if r.stepper != nil {
		if err := r.placer.SetStepping(t, steps); err != nil {
			return err
		}
	}
	if t.Raise != nil && signal == 0 {
		var err error
		if signal, err = r.raised(t); err != nil {
			return err
		}
	}
	t.Stopped = false
	return r.process.Resume(t, signal, steps)
}

// park sends a thread that has reached its end into the engine; see parkFor.
func (r *runner) park(t *tracee.Thread, regs *ptrace.Registers, signal int) error {
	return r.parkFor(t, &tracee.Final{Regs: *regs, Signal: signal}, agent.ParkedEnd)
}

// parkFor sends a thread into the engine, where it passes on the right to run and waits.
func (r *runner) parkFor(t *tracee.Thread, f *tracee.Final, why uint64) error {
	control, err := r.process.ReadControl()
	if err != nil {
		return err
	}
	known, err := r.process.ReadThread(t.Index)
	if err != nil {
		return err
	}
	if control.ParkPC == 0 {
		return errors.New("replay: the engine has no place to park a thread")
	}
	const room = 512 // an engine stack that is in use is not changed
	top := known.EngineSP
	if slot := agent.RThreadAddress(t.Index); f.Regs.Rsp > slot && f.Regs.Rsp < slot+agent.ThreadSlot {
		top = f.Regs.Rsp - room
	}
	f.Inside = known.Inside
	t.Final = f
	r.stepper.Parked(t)
	parked := f.Regs
	parked.Rdi = why
	parked.Rip, parked.Rsp = control.ParkPC, top&^15-8
	parked.Eflags &^= ptrace.FlagTrap
	parked.Orig_rax = ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &parked); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// unpark resumes a thread where it was parked.
func (r *runner) unpark(t *tracee.Thread) error {
	if t.Final == nil {
		return fmt.Errorf("replay: thread %d continues from a place that it never reached", t.Index)
	}
	regs := t.Final.Regs
	if r.process.TrapPC != 0 && regs.Rip == r.process.TrapPC+1 {
		regs.Rax = 1 // the answer that it waits for
	}
	regs.Orig_rax = ^uint64(0)
	t.Final = nil
	if err := r.unbegin(t); err != nil {
		return err
	}
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return err
	}
	if err := r.stepper.Unparked(t, &regs); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// unbegin lets a thread begin in the engine that was parked before that, and seems to run since then.
func (r *runner) unbegin(t *tracee.Thread) error {
	known, err := r.process.ReadThread(t.Index)
	if err != nil || known.RealTID != 0 {
		return err
	}
	known.State = agent.RStarting
	return r.process.WriteThread(t.Index, known)
}

// answer resumes a thread from its trap. The kernel has left rip after the int3.
func (r *runner) answer(t *tracee.Thread, s *tracee.SignalStop, value uint64) error {
	regs := s.Regs
	regs.Rax, regs.Orig_rax = value, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// raised tells the engine that the signal with which a thread is resumed comes from the
// controller.
func (r *runner) raised(t *tracee.Thread) (syscall.Signal, error) {
	raise := t.Raise
	t.Raise = nil
	control, err := r.process.ReadControl()
	if err != nil {
		return 0, err
	}
	control.Raised = uint64(t.Index)
	if err := r.process.WriteControl(control); err != nil {
		return 0, err
	}
	return raise.Signal, ptrace.SetSiginfo(t.TID, raise.Info)
}
