package replay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
	"diagnose/replay/tracepoint"
	"diagnose/replay/verify"
)

// Stopped is the replayed process with all its threads stopped. It is valid only during the call
// that it was passed to, and in that goroutine.
type Stopped struct {
	// Moment is where the thread that was waited for is.
	Moment evidence.Moment
	// Signal and Status say how the process ended; 0 if it has not.
	Signal, Status int

	c       *controller
	thread  *tracee.Thread
	process *image.Process
	// regs are the program's registers of the thread, if they are known.
	regs *ptrace.Registers
	// alone: the other threads have not been stopped.
	alone bool
	// question is what the thread asks, which then has not stopped itself; nil: it has.
	question *tracepoint.Question
}

// PID is the process's id, which differs from the one that the process sees.
func (s *Stopped) PID() int { return s.c.PID }

// TID is the kernel's id, which also differs from the recorded one, of the thread that was waited
// for; PID if there was none.
func (s *Stopped) TID() int {
	if s.thread == nil {
		return s.c.PID
	}
	return s.thread.TID
}

// Ordinal is the number of the last event of the thread that was waited for; 0 if there was none.
func (s *Stopped) Ordinal() (uint64, error) {
	if s.thread == nil || s.thread.Index == 0 {
		return 0, nil
	}
	r, err := s.c.ReadThread(s.thread.Index)
	if err != nil {
		return 0, err
	}
	return r.Ordinal, nil
}

// MadeUp counts the calls of the process so far whose results were not in the log. Such calls are no events of a thread.
func (s *Stopped) MadeUp() (uint64, error) {
	if s.c.Control == 0 {
		return 0, nil
	}
	control, err := s.c.ReadControl()
	if err != nil {
		return 0, err
	}
	return control.MadeUp, nil
}

// ReadMemory implements image.Memory. Unlike the other methods it may be called by several
// goroutines.
func (s *Stopped) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	return s.c.ReadMemory(addr, p)
}

// Process returns the process for analysis. A thread's number is that of the recording. Its
// registers are the program's even while it is in the engine.
func (s *Stopped) Process() (*image.Process, error) {
	if s.process != nil {
		return s.process, nil
	}
	if err := s.stopOthers(); err != nil {
		return nil, err
	}
	var err error
	s.process, err = s.c.OpenImage(s.thread)
	return s.process, err
}

// stopOthers stops the other threads.
func (s *Stopped) stopOthers() error {
	if !s.alone {
		return nil
	}
	s.alone, s.c.allStopped = false, true
	return s.c.StopAll()
}

// Registers returns the general registers of the thread that was waited for, as Process does, but
// at much less cost.
func (s *Stopped) Registers() (image.Registers, error) {
	var r image.Registers
	if s.thread == nil {
		return r, nil
	}
	regs, err := s.registers()
	if err != nil {
		return r, err
	}
	for n, v := range tracee.GeneralRegisters(&regs) {
		r.Set(image.Register(n), v)
	}
	r.Set(image.RIP, regs.Rip)
	r.FSBase, r.GSBase = evidence.Addr(regs.Fs_base), evidence.Addr(regs.Gs_base)
	r.Flags = regs.Eflags
	return r, nil
}

func (s *Stopped) registers() (ptrace.Registers, error) {
	if s.regs != nil {
		return *s.regs, nil
	}
	return s.c.NamedRegisters(s.thread)
}

// Vector returns the vector registers of the thread that was waited for.
func (s *Stopped) Vector() (*image.VectorState, error) {
	if s.question != nil {
		return image.VectorOf(s.question.Vector), nil
	}
	var area [ptrace.FXSaveBytes]byte
	if _, err := ptrace.ReadRegset(s.TID(), ptrace.RegsetFP, area[:]); err != nil {
		return nil, err
	}
	return image.VectorOf(area[:]), nil
}

// Stack names the frames of the thread that was waited for, innermost first.
func (s *Stopped) Stack() ([]string, error) {
	if s.thread == nil {
		return nil, nil
	}
	p, err := s.Process()
	if err != nil {
		return nil, err
	}
	return stackOf(p, s.thread.Index), nil
}

func (s *Stopped) close() {
	if s.process != nil {
		s.process.Close()
	}
}

// HandOver detaches from the process, with every thread at its place in the program and the
// process stopped as by SIGSTOP, so that a debugger can attach. When wait returns, the process is
// killed, and the replay ends.
func (s *Stopped) HandOver(wait func(pid int) error) error {
	c := s.c
	c.Unpin()
	// The engine's requests will not be answered any more.
	if control, err := c.ReadControl(); err == nil {
		c.result.Events = control.Consumed
		control.Tracer = 0
		if err := c.WriteControl(control); err != nil {
			return err
		}
	}
	for _, t := range c.Threads {
		if t.Final != nil {
			regs := t.Final.Regs
			regs.Orig_rax = ^uint64(0)
			if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
				return err
			}
		}
		if err := ptrace.ClearBreakpoint(t.TID); err != nil {
			return err
		}
	}
	if err := c.Traps.Remove(); err != nil {
		return err
	}
	// It is pending before any thread resumes, so none executes the program's code before it.
	if err := unix.Kill(c.PID, unix.SIGSTOP); err != nil {
		return fmt.Errorf("replay: stop: %w", err)
	}
	for _, t := range c.Threads {
		if err := ptrace.Detach(t.TID, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	c.Detached = true
	c.result.Moment = s.Moment
	err := wait(c.PID)
	unix.Kill(c.PID, unix.SIGKILL)
	ptrace.WaitFor(c.PID)
	c.Memory.Close()
	return errors.Join(err, ErrEnough)
}

// stopped returns the Stopped for a call of a hook.
func (c *controller) stopped(t *tracee.Thread) (*Stopped, error) {
	s := &Stopped{c: c, thread: t}
	if c.end != nil {
		s.Signal, s.Status = c.end.signal, c.end.status
	}
	if t != nil {
		m, err := c.MomentOf(t)
		if err != nil {
			return nil, err
		}
		s.Moment = m
	}
	return s, nil
}

// Stuck says why the replay makes no progress; nil if it ended otherwise.
func (s *Stopped) Stuck() *StuckError {
	if s.c.end == nil {
		return nil
	}
	e, _ := s.c.end.failure.(*StuckError)
	return e
}

// Diverged reports whether the replay ended because it differs from the recording.
func (s *Stopped) Diverged() bool { return s.c.end != nil && s.c.end.kind == EndDiverged }

// Ended reports whether the program ended or failed, as far as it could be replayed.
func (s *Stopped) Ended() bool {
	return s.c.end != nil && s.c.end.failure == nil && s.c.end.kind != EndMoment
}

// Compare compares the program's memory and registers, wherever it is, with the core of the recording's
// end.
func (s *Stopped) Compare() (*Comparison, error) {
	if s.c.Core == nil {
		return nil, withoutCore(s.c.Rec)
	}
	if err := s.stopOthers(); err != nil {
		return nil, err
	}
	return verify.CompareProgram(s.c.ctx, s.c.Process, s.c.Stage(), s.c.Core)
}

// ThreadPC returns the pc of a thread in the program.
func (s *Stopped) ThreadPC(thread uint32) (evidence.Addr, error) {
	t := s.c.ThreadNumbered(thread)
	if t == nil {
		return 0, fmt.Errorf("replay: there is no thread %d", thread)
	}
	regs, err := s.c.ProgramRegisters(t)
	return evidence.Addr(regs.Rip), err
}
