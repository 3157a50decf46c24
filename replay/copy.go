package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/checkpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Copy is a copy of a stopped replay's process, with all its threads. It has left the recording: its memory and the registers of one of its
// threads may be changed, and that thread may call the program's functions. The replay that it was made of is not affected.
//
// In the copy one thread runs at a time, as in a FreeRequest, and results of system calls are the log's or made up. The kernel refuses all
// calls that act outside of the copy: it has no files, sockets, signals and processes.
//
// It is used in the goroutine of the call that the Stopped was passed to, and closed before that call returns.
type Copy struct {
	c      *controller
	of     *controller
	thread *tracee.Thread // nil: none was selected
	// ran: its threads have run.
	ran bool
	// over: a call has not returned, and there will be no other.
	over bool
}

// Copy makes a copy of the process, of which the thread with this number can be changed and can call functions. The error is a
// *NoCheckpointError where that is not possible: in a request without copies, if the process has memory or signals that a fork would not
// have, and if the recorded program's library cannot leave its log.
func (s *Stopped) Copy(thread uint32) (*Copy, error) {
	if s.c.ThreadNumbered(thread) == nil {
		return nil, fmt.Errorf("replay: there is no thread %d", thread)
	}
	x, err := s.CopyMemory()
	if err != nil {
		return nil, err
	}
	if err := x.take(thread, s.registersOf(thread)); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// CopyMemory is Copy without a thread: Select says later which one it is. Until then each thread is where the replay has it, as in a system call.
func (s *Stopped) CopyMemory() (*Copy, error) {
	of := s.c
	switch {
	case !of.request.copies():
		return nil, &NoCheckpointError{Why: "the request is one without copies"}
	case !of.IsLast():
		return nil, &NoCheckpointError{Why: "the process is an ancestor of the recorded one"}
	}
	control, err := of.ReadControl()
	if err != nil {
		return nil, err
	}
	if control.Free != agent.FreeMay {
		return nil, &NoCheckpointError{Why: "the library that recorded the program cannot leave its log: record it again"}
	}
	if s.question != nil {
		of.probing.copied() // the next hits will make copies, too
	}
	if err := s.stopOthers(); err != nil {
		return nil, err
	}
	placed, err := of.placer.Save()
	if err != nil {
		return nil, &NoCheckpointError{Why: err.Error()}
	}
	common := of.request.Common
	common.Hooks, common.AtEnd, common.Echo, common.Progress = nil, nil, nil, nil
	f := &free{changed: true, able: control.FreeAble}
	c := newController(of.ctx, of.Rec, parts{Common: common, free: &freePart{}, from: &Checkpoint{recordings: of.Recordings}},
		&attempt{timing: of.attempt.timing, free: f})
	x := &Copy{c: c, of: of}
	if err := x.make(placed.Text, placed.Mapped); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// copies reports whether copies can be made in the request.
func (p *parts) copies() bool { return p.debug != nil || p.probing != nil && p.probing.Copies }

// registersOf returns the registers of a thread in the program, if the stop has them; nil: the engine knows them.
func (s *Stopped) registersOf(thread uint32) *ptrace.Registers {
	if s.thread != nil && s.thread.Index == thread {
		return s.regs
	}
	return nil
}

// make makes the process and lets it leave the recording.
func (x *Copy) make(text []tracee.Words, mapped []tracee.Span) error {
	c := x.c
	if err := checkpoint.Fork(x.of.Process, c.Process, traceOptions, text); err != nil {
		return err
	}
	c.Mapped = append(c.Mapped, mapped...)
	if err := c.chooseBreakpoints(); err != nil {
		return err
	}
	for _, t := range c.Threads {
		if err := forgetEnd(c.Process, t); err != nil {
			return err
		}
	}
	return x.leaveRecording()
}

// take makes a thread the copy's own, and takes it out of the engine. regs are its registers in the program; nil: those that the engine knows.
func (x *Copy) take(thread uint32, regs *ptrace.Registers) error {
	t := x.c.ThreadNumbered(thread)
	if t == nil {
		return fmt.Errorf("replay: a copy of the process has no thread %d", thread)
	}
	if regs == nil {
		named, err := x.c.NamedRegisters(t)
		if err != nil {
			return err
		}
		regs = &named
	}
	r, err := x.c.ReadThread(thread)
	if err != nil {
		return err
	}
	r.Inside, r.State, r.Pending, r.Fresh = 0, agent.RRunning, 0, 0
	if err := x.c.WriteThread(thread, r); err != nil {
		return err
	}
	t.Final, t.Deferred, t.Raise = nil, nil, nil
	x.thread = t
	return x.setRegisters(regs)
}

// Select makes another thread the one that can be changed and can call functions. That is possible before the copy has run.
func (x *Copy) Select(thread uint32) error {
	if thread == x.Thread() {
		return nil
	}
	if x.ran {
		return fmt.Errorf("replay: functions were called in thread %d of this copy, so none can be in thread %d", x.thread.Index, thread)
	}
	return x.take(thread, nil)
}

// forgetEnd makes the engine believe that the tool lets a thread wait that has reported the end of the log.
func forgetEnd(p *tracee.Process, t *tracee.Thread) error {
	if !t.Stopped || t.Final != nil {
		return nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || regs.Rip != p.TrapPC+1 || regs.Rax != agent.TrapFinished {
		return err
	}
	regs.Rax = 0
	return ptrace.SetRegisters(t.TID, &regs)
}

// leaveRecording makes the engine of the copy do what it does in a replay that has diverged from the recording (engine/free.c).
func (x *Copy) leaveRecording() error {
	c := x.c
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	header, err := tracee.ReadStruct[agent.RawReplayHeader](c.Memory, control.Image)
	if err != nil {
		return err
	}
	// The engine marks in the image which events it has used.
	size := (header.Size + tracee.PageSize - 1) &^ (tracee.PageSize - 1)
	if err := checkpoint.Call(c.Process, unix.SYS_MPROTECT, control.Image, size, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	control.Free, control.FreeFirst, control.FreeOrder = agent.FreeIs, 0, 0
	control.Echo, control.Tracer = 0, uint32(os.Getpid())
	control.StopThread, control.StopAt = 0, ^uint64(0)
	// That the copy differs from the recording is no news.
	control.Divergence.Reason, c.result.Left = agent.DiffersKind, &DivergenceError{}
	return c.WriteControl(control)
}

// Close ends the copy.
func (x *Copy) Close() error {
	pid := x.c.PID
	x.c.Recordings.Close()
	if pid == 0 {
		return nil
	}
	x.c.Kill()
	return checkpoint.Bury(x.of.Process, pid)
}

// Thread is the number of the thread that can be changed; 0: none was selected.
func (x *Copy) Thread() uint32 {
	if x.thread == nil {
		return 0
	}
	return x.thread.Index
}

// Over reports whether a call has not returned: then no other is possible.
func (x *Copy) Over() bool { return x.over }

// ReadMemory implements image.Memory.
func (x *Copy) ReadMemory(addr evidence.Addr, p []byte) (int, error) { return x.c.ReadMemory(addr, p) }

// WriteMemory changes the copy's memory. Memory that the program cannot write, as its text, can be changed, too. The recording library's
// cannot.
func (x *Copy) WriteMemory(addr evidence.Addr, p []byte) error {
	if end := uint64(addr) + uint64(len(p)); end < uint64(addr) || uint64(addr) < agent.EngineStacks && end > agent.EngineBase {
		return fmt.Errorf("replay: %v is the recording library's", addr)
	}
	_, err := x.c.Memory.WriteAt(p, int64(addr))
	return err
}

// ThreadRegisters is that of DebugStop.
func (x *Copy) ThreadRegisters(number uint32) (general, extended []byte, err error) {
	return threadRegisters(x.c.Process, number)
}

// SetRegisters changes the registers of the copy's thread, in the form of ThreadRegisters.
func (x *Copy) SetRegisters(general, extended []byte) error {
	var regs ptrace.Registers
	if err := binary.Read(bytes.NewReader(general), binary.LittleEndian, &regs); err != nil {
		return fmt.Errorf("replay: registers: %w", err)
	}
	if err := x.setRegisters(&regs); err != nil {
		return err
	}
	return ptrace.SetRegset(x.thread.TID, ptrace.RegsetXState, extended)
}

func (x *Copy) setRegisters(regs *ptrace.Registers) error {
	changed := *regs
	changed.Orig_rax = ^uint64(0) // the kernel repeats no system call
	return ptrace.SetRegisters(x.thread.TID, &changed)
}

// Registers returns the general registers of the copy's thread.
func (x *Copy) Registers() (image.Registers, error) { return x.stopped().Registers() }

// Vector returns its vector registers.
func (x *Copy) Vector() (*image.VectorState, error) { return x.stopped().Vector() }

// Process returns the copy for analysis. The caller closes it.
func (x *Copy) Process() (*image.Process, error) { return x.c.OpenImage(x.thread) }

func (x *Copy) stopped() *Stopped { return &Stopped{c: x.c, thread: x.thread} }
