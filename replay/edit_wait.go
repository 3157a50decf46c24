package replay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// belowStack is how far below the stack pointer a called function of the recording library is sure not to have reached when it
// reads its arguments.
const belowStack = 4096

// EndWait has a call of pthread_cond_wait, at whose first instruction of the recording library the thread is, end when no thread
// can run. It returns 0 then, as such a call may at any time (POSIX.1-2017, pthread_cond_wait: spurious wakeups). over is called
// when the call returns, and is told whether it ended so. For a free replay, in which time passes only while no thread can run
// (agent/src/engine/free.c): the call is made one with a time limit.
func (s *Stopped) EndWait(over func(ended bool)) error {
	regs, symbol, err := entered(s)
	if err != nil {
		return err
	}
	p, err := s.Process()
	if err != nil {
		return err
	}
	m := p.ModuleAt(evidence.Addr(regs.Rip))
	if symbol != "pthread_cond_wait" || m == nil || m.Object == nil {
		return tracee.Inputf("replay: the call at %v is none of pthread_cond_wait", s.Moment)
	}
	timed, found := m.Object.SymbolNamed("pthread_cond_timedwait")
	if !found {
		return errors.New("replay: the recording library has no pthread_cond_timedwait")
	}
	back, err := image.Uint64(s, evidence.Addr(regs.Rsp))
	if err != nil {
		return fmt.Errorf("replay: the wait at %v: %w", s.Moment, err)
	}
	limit := evidence.Addr((regs.Rsp - belowStack) &^ 15)
	if err := s.WriteMemory(limit, make([]byte, 16)); err != nil { // struct timespec
		return fmt.Errorf("replay: the wait at %v: %w", s.Moment, err)
	}
	thread, sp := s.Moment.Thread, regs.Rsp+8
	regs.Rip, regs.Rdx, regs.Orig_rax = uint64(m.Addr(timed.Value)), uint64(limit), ^uint64(0)
	if err := ptrace.SetRegisters(s.TID(), &regs); err != nil {
		return err
	}
	return s.AddBreak(Break{PC: evidence.Addr(back), Changes: true, Do: func(s *Stopped) error {
		regs, err := ptrace.GetRegisters(s.TID())
		if err != nil || s.Moment.Thread != thread || regs.Rsp != sp {
			return err
		}
		ended := regs.Rax == uint64(unix.ETIMEDOUT)
		if ended {
			regs.Rax, regs.Orig_rax = 0, ^uint64(0)
			if err := ptrace.SetRegisters(s.TID(), &regs); err != nil {
				return err
			}
		}
		over(ended)
		return ErrBreakOver
	}})
}
