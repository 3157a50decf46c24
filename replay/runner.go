package replay

import (
	"errors"
	"fmt"
	"syscall"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

// runner resumes stopped threads of the process: by one instruction or at full speed, with a
// signal, or into the engine, where they wait.
type runner struct {
	process *process
	placer  placer
	// stepper steps the threads of a StepRequest; nil: nothing is stepped.
	stepper *stepper
}

// cont lets a thread continue, by one instruction if it is stepped.
func (r *runner) cont(t *thread, signal syscall.Signal) error {
	return r.contBy(t, signal, r.stepper.stepping(t))
}

// contBy lets a thread continue, by one instruction if steps is set.
func (r *runner) contBy(t *thread, signal syscall.Signal, steps bool) error {
	if r.stepper != nil {
		if err := r.placer.steps(t, steps); err != nil {
			return err
		}
	}
	if t.raise != nil && signal == 0 {
		var err error
		if signal, err = r.raised(t); err != nil {
			return err
		}
	}
	t.stopped = false
	switch {
	case !r.process.started:
		return ptrace.ContToCall(t.tid, signal)
	case steps:
		return ptrace.Step(t.tid, signal)
	}
	return ptrace.Cont(t.tid, signal)
}

// park sends a thread that has reached its end into the engine; see parkFor.
func (r *runner) park(t *thread, regs *ptrace.Registers, signal int) error {
	return r.parkFor(t, &finalState{regs: *regs, signal: signal}, agent.ParkedEnd)
}

// parkFor sends a thread into the engine, where it passes on the right to run and waits.
func (r *runner) parkFor(t *thread, f *finalState, why uint64) error {
	control, err := r.process.readControl()
	if err != nil {
		return err
	}
	known, err := r.process.rthread(t.index)
	if err != nil {
		return err
	}
	if control.ParkPC == 0 {
		return errors.New("replay: the engine has no place to park a thread")
	}
	const room = 512 // an engine stack that is in use is not changed
	top := known.EngineSP
	if slot := agent.RThreadAddress(t.index); f.regs.Rsp > slot && f.regs.Rsp < slot+agent.ThreadSlot {
		top = f.regs.Rsp - room
	}
	f.inside = known.Inside
	t.final = f
	r.stepper.parked(t)
	parked := f.regs
	parked.Rdi = why
	parked.Rip, parked.Rsp = control.ParkPC, top&^15-8
	parked.Eflags &^= unixFlagTrap
	parked.Orig_rax = ^uint64(0)
	if err := ptrace.SetRegisters(t.tid, &parked); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// unpark resumes a thread where it was parked.
func (r *runner) unpark(t *thread) error {
	if t.final == nil {
		return fmt.Errorf("replay: thread %d continues from a place that it never reached", t.index)
	}
	regs := t.final.regs
	if r.process.trapPC != 0 && regs.Rip == r.process.trapPC+1 {
		regs.Rax = 1 // the answer that it waits for
	}
	regs.Orig_rax = ^uint64(0)
	t.final = nil
	if err := ptrace.SetRegisters(t.tid, &regs); err != nil {
		return err
	}
	if err := r.stepper.unparked(t, &regs); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// answer resumes a thread from its trap. The kernel has left rip after the int3.
func (r *runner) answer(t *thread, s *signalStop, value uint64) error {
	regs := s.regs
	regs.Rax, regs.Orig_rax = value, ^uint64(0)
	if err := ptrace.SetRegisters(t.tid, &regs); err != nil {
		return err
	}
	return r.cont(t, 0)
}

// raised tells the engine that the signal with which a thread is resumed comes from the
// controller.
func (r *runner) raised(t *thread) (syscall.Signal, error) {
	raise := t.raise
	t.raise = nil
	control, err := r.process.readControl()
	if err != nil {
		return 0, err
	}
	control.Raised = uint64(t.index)
	if err := r.process.writeStruct(r.process.control, control); err != nil {
		return 0, err
	}
	return raise.signal, ptrace.SetSiginfo(t.tid, raise.info)
}
