package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Checkpoint is a copy of a process. It may be used by several goroutines at once, until Close.
type Checkpoint struct {
	keeper *keeper
	// first is the process's first thread; alive: it had not ended.
	first   thread
	alive   bool
	threads []thread // the others
	// named is the name that threads of a copy have at first; empty: it is not known.
	named string
	// The fields of tracee.Process.
	control, trapPC uint64
	mapped, library []tracee.Span
}

// Take copies a process, all of whose threads are stopped. options are the ptrace options of its threads. text has the program's
// own bytes where others are in the text, besides those that the process's memory knows. If the process cannot be copied, the
// error is an *ImpossibleError.
func Take(p *tracee.Process, options int, text []tracee.Words) (*Checkpoint, error) {
	c, forks, err := capture(p, false)
	if err != nil {
		return nil, err
	}
	pid, err := forkStopped(p, forks, options, text)
	if err != nil {
		return nil, err
	}
	if err := leave(pid); err != nil {
		return nil, err
	}
	if c.keeper, err = keep(pid); err != nil {
		return nil, err
	}
	return c, nil
}

// capture reads the state of a process's threads. forks is the one that can make a copy. confined: the copy will be.
func capture(p *tracee.Process, confined bool) (c *Checkpoint, forks int, err error) {
	if err := checkPossible(p, confined); err != nil {
		return nil, 0, err
	}
	c = &Checkpoint{control: p.Control, trapPC: p.TrapPC}
	t := p.Threads[p.PID]
	if c.alive = t != nil && t.Stopped; !c.alive {
		t = p.SortedThreads()[0]
		for _, x := range p.SortedThreads() {
			if x.Stopped {
				t = x
			}
		}
	}
	forks = t.TID
	if err := mapPage(p, forks); err != nil {
		return nil, 0, err
	}
	for _, t := range p.SortedThreads() {
		if !t.Stopped {
			c.first.tracee = tracee.Thread{TID: t.TID, Index: t.Index}
			continue
		}
		x, err := captureThread(p, t)
		if err != nil {
			return nil, 0, err
		}
		if t.TID == forks {
			c.named = x.name
		}
		if t.TID == p.PID {
			c.first = x
		} else {
			c.threads = append(c.threads, x)
		}
	}
	c.mapped = append(c.mapped, p.Mapped...)
	c.library = append(c.library, p.Library...)
	return c, forks, nil
}

// forkStopped makes a child with the program's own text, which is stopped and has executed nothing.
func forkStopped(p *tracee.Process, tid, options int, text []tracee.Words) (pid int, err error) {
	saved, err := ptrace.GetRegisters(tid)
	if err != nil {
		return 0, err
	}
	if err := ptrace.SetOptions(tid, ptrace.ExitKill); err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, ptrace.SetOptions(tid, options), ptrace.SetRegisters(tid, &saved))
	}()
	caller, err := ptrace.NewCaller(tid, page)
	if err != nil {
		return 0, err
	}
	if pid, err = fork(caller); errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) {
		return 0, impossible("the kernel makes no copy of the process: %v", err)
	} else if err != nil {
		return 0, err
	}
	if err := restoreText(p, pid, text); err != nil {
		return 0, errors.Join(err, kill(pid))
	}
	return pid, nil
}

// restoreText removes the tool's changes of the text from a fork.
func restoreText(p *tracee.Process, pid int, text []tracee.Words) error {
	traps, replaced, err := p.Memory.Covered()
	if err != nil {
		return err
	}
	m, err := ptrace.OpenMemory(pid)
	if err != nil {
		return err
	}
	defer m.Close()
	for _, w := range slices.Concat(traps, text, replaced) {
		if _, err := m.WriteAt(w.Data, int64(w.Addr)); err != nil {
			return err
		}
	}
	return nil
}

// PID is the process that has the state.
func (c *Checkpoint) PID() int { return c.keeper.pid }

// Close gives up the checkpoint.
func (c *Checkpoint) Close() { c.keeper.close() }

// Continue makes a process in the state of the checkpoint, with all its threads stopped, which this thread of the tool traces with
// these options. It sets the fields of p that the process was copied from; the others are the caller's.
func (c *Checkpoint) Continue(p *tracee.Process, options int) error {
	pid, err := c.keeper.fork()
	if err != nil {
		return err
	}
	if err := seize(pid); err != nil {
		unix.Kill(pid, unix.SIGKILL)
		return err
	}
	return c.populate(p, pid, options)
}

// populate gives a fork the threads and the state of the checkpoint.
func (c *Checkpoint) populate(p *tracee.Process, pid, options int) (err error) {
	p.PID = pid
	if p.Memory, err = tracee.OpenMemory(pid); err != nil {
		return err
	}
	p.Control, p.TrapPC, p.Started = c.control, c.trapPC, true
	p.Mapped = append(p.Mapped, c.mapped...)
	p.Library = append(p.Library, c.library...)
	p.Threads = map[int]*tracee.Thread{}
	if err := c.makeThreads(p); err != nil {
		return err
	}
	if c.alive {
		if err := c.first.restore(p.Memory.Memory, pid, c.named, false); err != nil {
			return err
		}
	}
	first := c.first.tracee
	first.TID = pid
	p.Threads[pid] = &first
	for tid, t := range p.Threads {
		if !t.Stopped {
			continue
		}
		if t.Deferred != nil {
			t.Deferred = &ptrace.Stop{TID: tid, Kind: t.Deferred.Kind}
		}
		if err := ptrace.SetOptions(tid, options); err != nil {
			return err
		}
	}
	if !c.alive {
		return endFirst(p)
	}
	return nil
}

// makeThreads makes the threads but the first one.
func (c *Checkpoint) makeThreads(p *tracee.Process) error {
	caller, err := ptrace.NewCaller(p.PID, page)
	if err != nil {
		return err
	}
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_PTRACE |
		unix.CLONE_CHILD_CLEARTID
	for i := range c.threads {
		x := &c.threads[i]
		made, err := caller.Call(unix.SYS_CLONE, flags, 0, 0, x.clears, 0)
		if err != nil {
			return err
		}
		tid := int(made)
		stop, err := ptrace.WaitFor(tid)
		if err == nil && stop.Kind != ptrace.Interrupted {
			err = fmt.Errorf("checkpoint: a new thread came to %v", stop)
		}
		if err != nil {
			return err
		}
		if err := x.restore(p.Memory.Memory, tid, c.named, true); err != nil {
			return err
		}
		t := x.tracee
		t.TID = tid
		p.Threads[tid] = &t
	}
	return nil
}

// endFirst ends the first thread, as it had ended in the process that was copied.
func endFirst(p *tracee.Process) error {
	regs, err := ptrace.GetRegisters(p.PID)
	if err != nil {
		return err
	}
	regs.Rip, regs.Rax, regs.Rdi, regs.Orig_rax = page, unix.SYS_EXIT, 0, ^uint64(0)
	if err := ptrace.SetRegisters(p.PID, &regs); err != nil {
		return err
	}
	if err := ptrace.Cont(p.PID, 0); err != nil {
		return err
	}
	return p.AwaitFirstEnded()
}
