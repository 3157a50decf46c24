package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/breakpoint"
	"diagnose/replay/launch"
	"diagnose/replay/loadguard"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// start starts the oldest process of the replay as it was recorded, stopped before its first
// instruction.
func (c *controller) start() error {
	if err := c.launch(traceOptions); err != nil {
		return err
	}
	var err error
	if c.Memory, err = tracee.OpenMemory(c.PID); err != nil {
		return err
	}
	if err := c.chooseBreakpoints(); err != nil {
		return err
	}
	if c.loading, err = loadguard.New(c.Process, c.Stages[0].Rec); err != nil {
		return err
	}
	return c.loading.CheckExecuted()
}

// launch starts the program with options of ptrace.
func (c *controller) launch(options int) error {
	m := c.Stages[0].Rec.Manifest
	if err := recorded.CheckFiles(c.Stages[0].Rec); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer null.Close()
	path, args := m.Program.Execve()
	l := launch.Launch{
		Path: path, Args: args, Environ: record.Strings(m.Program.Environ),
		Directory: string(m.Program.Directory), StackLimit: m.Program.StackLimit,
		Files:   []uintptr{null.Fd(), null.Fd(), null.Fd()},
		Options: options,
	}
	umask := int(m.Program.Umask)
	l.Umask = &umask
	if out := c.request.Echo; out != nil {
		l.Files[1], l.Files[2] = out.Fd(), out.Fd()
	}
	if _, err := hex.Decode(l.Random[:], []byte(m.Start.Random)); err != nil {
		return tracee.Inputf("replay: the recording's random bytes: %w", err)
	}
	c.PID, err = l.Start()
	var cannot *launch.StartError
	switch {
	case errors.As(err, &cannot):
		return tracee.Inputf("replay: in the directory %s: %w", m.Program.Directory, err)
	case err != nil:
		return fmt.Errorf("replay: %w", err)
	}
	c.Threads[c.PID] = &tracee.Thread{TID: c.PID, Stopped: true}
	if c.Stages[0].SeveralThreads() {
		c.pin()
	}
	return nil
}

// pin restricts the process to the processor that it had in the recording, where that is known and may be used.
func (c *controller) pin() {
	for _, stage := range c.Stages {
		if turns := stage.Rec.Manifest.Turns; turns != nil && turns.Processor != nil && c.PinTo(*turns.Processor) {
			return
		}
	}
	c.Pin()
}

// traceOptions are the options of each thread of the process.
const traceOptions = ptrace.ExitKill | ptrace.TraceSysGood | ptrace.TraceClone | ptrace.TraceFork | ptrace.TraceVFork | ptrace.TraceExec

// chooseBreakpoints decides whether breakpoints are debug registers or traps.
func (c *controller) chooseBreakpoints() error {
	switch err := ptrace.DebugRegistersFire(); {
	case errors.Is(err, ptrace.ErrNoDebugRegisters):
		c.UseTraps()
	case err != nil:
		return err
	case c.debugging != nil:
		c.UseTraps() // a debugger has more breakpoints than there are registers
	}
	return nil
}

// hello answers DG_TRAP_HELLO, and DG_TRAP_FORKED in a child whose recording is replayed: it tells
// the engine what to replay.
func (c *controller) hello(s *tracee.SignalStop, forked bool) (answer uint64, err error) {
	c.Control, c.TrapPC = s.Regs.Rdi, s.Regs.Rip-1
	control, err := c.ReadControl()
	if err != nil {
		return 0, err
	}
	if control.Version != agent.RecordVersion {
		return 0, tracee.Inputf("replay: the program's agent has version %d, this tool %d", control.Version, agent.RecordVersion)
	}
	stage := c.Stage()
	if err := c.LiftProtection(); err != nil {
		return 0, err // its mappings are compared
	}
	if !forked {
		if err := c.CheckPoints(control); err != nil {
			return 0, err
		}
		if err := recorded.CompareStart(c.Process, stage.Rec.Manifest); err != nil {
			return 0, err
		}
		if err := recorded.CopyStart(c.Process, stage.Rec); err != nil {
			return 0, err
		}
		if err := c.WriteSites(c.Stage().Sites, control, 0); err != nil {
			return 0, err
		}
	}
	control.Mode = agent.ModeReplay
	control.PID, control.Tracer = uint32(stage.Rec.Manifest.PID), uint32(os.Getpid())
	control.ForkAt, control.StopAt = ^uint64(0), ^uint64(0)
	control.Consumed, control.Echo, control.Lazy = 0, 0, 0
	if c.attempt.timing == record.TimingLazy {
		control.Lazy = 1
	}
	if c.request.Echo != nil && c.IsLast() {
		control.Echo = 1
	}
	control.Free = agent.FreeNot
	if f := c.attempt.free; f != nil {
		if err := f.hello(c.Recordings, control, forked); err != nil {
			return 0, err
		}
	} else if c.IsLast() && c.request.copies() && control.FreeAble >= ableToLeave {
		control.Free = agent.FreeMay // a copy will
	}
	if !c.IsLast() {
		child := c.Stages[c.Step+1].Rec.Manifest.Parent
		control.ForkThread, control.ForkAt = child.Thread, child.Ordinal
	} else if len(c.hooks.list) > 0 {
		control.StopThread, control.StopAt = c.hooks.list[0].At.Thread, c.hooks.list[0].At.Ordinal
	}
	if err := setPath(&control.LogPath, recorded.PathOf(stage.Image)); err != nil {
		return 0, err
	}
	if err := setPath(&control.DataPath, recorded.PathOf(stage.Data)); err != nil {
		return 0, err
	}
	c.watch.watchProcess(c.PID, c.Control)
	c.loading, c.Started = nil, true
	return 1, c.WriteControl(control)
}

func setPath(field *[1024]byte, path string) error {
	*field = [1024]byte{}
	if len(path) >= len(field) {
		return fmt.Errorf("replay: the path %s is too long", path)
	}
	copy(field[:], path)
	return nil
}

// forked handles the fork of the next stage's process. The parent is not needed any more.
func (c *controller) forked(t *tracee.Thread) error {
	message, err := ptrace.EventMessage(t.TID)
	if err != nil {
		return err
	}
	if c.IsLast() {
		return fmt.Errorf("replay: process %d made a process, which no replay does", c.PID)
	}
	child := int(message)
	memory, err := tracee.OpenMemory(child)
	if err != nil {
		return err
	}
	parent := c.PID
	if err := c.AdoptMemory(memory); err != nil {
		return err
	}
	c.PID, c.Control = child, 0
	c.Step++
	c.watch.watchProcess(child, 0)
	c.Threads = map[int]*tracee.Thread{child: {TID: child}}
	held := c.early
	c.early = nil
	if err := unix.Kill(parent, unix.SIGKILL); err != nil {
		return fmt.Errorf("replay: kill: %w", err)
	}
	// The parent's end is waited for by its id. The ends of its other threads come before it
	// (ptrace(2), "Death under ptrace").
	for {
		stop, err := ptrace.Wait()
		if err != nil {
			return err
		}
		switch {
		case stop.TID == child:
			held = &stop
		case stop.TID == parent && stop.Kind == ptrace.Ended:
			if held == nil {
				return nil
			}
			return c.handle(*held)
		}
	}
}

// begin handles a new thread that has not run yet. If the recording ended before its first event,
// only the core says how far it gets, so its place must be set before it runs to that event.
func (c *controller) begin(t *tracee.Thread) error {
	if err := errors.Join(c.armWatches(t), c.probing.arm(t), c.debugging.newThread(t)); err != nil {
		return err
	}
	if t.Index != 0 || c.Control == 0 || c.Core == nil || !c.IsLast() {
		return c.cont(t, 0)
	}
	unbegun := c.Unbegun()
	if len(unbegun) == 0 {
		return c.cont(t, 0)
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	for _, i := range unbegun {
		end := c.RecordedThreads()[i]
		raw := end.Raw
		if raw.ThreadPointer != regs.Fs_base {
			continue
		}
		r, err := c.ReadThread(i)
		if err != nil || r.State != agent.RStarting || r.RealTID != 0 || r.ThreadPointer != regs.Fs_base {
			continue
		}
		control, err := c.ReadControl()
		if err != nil {
			return err
		}
		if pc := uint64(end.Registers.PC()); pc >= control.TextLow && pc < control.TextHigh {
			break
		}
		t.Index = i
		m, err := c.placer.First(t, end, &regs)
		if err != nil {
			return err
		}
		if m.Kind == breakpoint.Holds {
			return c.park(t, &regs, 0)
		}
		break
	}
	return c.cont(t, 0)
}
