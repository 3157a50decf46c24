package replay

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image/object"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// start starts the oldest process of the replay as it was recorded, stopped before its first
// instruction.
func (c *controller) start() error {
	m := c.stages[0].rec.Manifest
	if err := checkFiles(c.stages[0].rec); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer null.Close()
	path, args := m.Program.Execve()
	l := record.Launch{
		Path: path, Args: args, Environ: record.Strings(m.Program.Environ),
		Directory: string(m.Program.Directory), StackLimit: m.Program.StackLimit,
		Files:   []uintptr{null.Fd(), null.Fd(), null.Fd()},
		Options: ptrace.ExitKill | ptrace.TraceSysGood | ptrace.TraceClone | ptrace.TraceFork | ptrace.TraceVFork | ptrace.TraceExec,
	}
	umask := int(m.Program.Umask)
	l.Umask = &umask
	if out := c.opts.Echo; out != nil {
		l.Files[1], l.Files[2] = out.Fd(), out.Fd()
	}
	if _, err := hex.Decode(l.Random[:], []byte(m.Start.Random)); err != nil {
		return inputf("replay: the recording's random bytes: %w", err)
	}
	c.pid, err = l.Start()
	var cannot *record.StartError
	switch {
	case errors.As(err, &cannot):
		return inputf("replay: in the directory %s: %w", m.Program.Directory, err)
	case err != nil:
		return fmt.Errorf("replay: %w", err)
	}
	c.threads[c.pid] = &thread{tid: c.pid, stopped: true}
	if c.stages[0].severalThreads() {
		c.pin()
	}
	if c.memory, err = openMemory(c.pid); err != nil {
		return err
	}
	c.loading = newLoading(c)
	return c.loading.executed()
}

// hello answers DG_TRAP_HELLO, and DG_TRAP_FORKED in a child whose recording is replayed: it tells
// the engine what to replay.
func (c *controller) hello(s *signalStop, forked bool) (answer uint64, err error) {
	c.control, c.trapPC = s.regs.Rdi, s.regs.Rip-1
	control, err := c.readControl()
	if err != nil {
		return 0, err
	}
	if control.Version != agent.RecordVersion {
		return 0, inputf("replay: the program's agent has version %d, this tool %d", control.Version, agent.RecordVersion)
	}
	stage := c.stage()
	if !forked {
		if err := c.checkPoints(control); err != nil {
			return 0, err
		}
		if err := c.compareStart(stage.rec.Manifest); err != nil {
			return 0, err
		}
		if err := c.copyStart(stage.rec); err != nil {
			return 0, err
		}
		if err := c.writeSites(control, 0); err != nil {
			return 0, err
		}
	}
	control.Mode = agent.ModeReplay
	control.PID, control.Tracer = uint32(stage.rec.Manifest.PID), uint32(os.Getpid())
	control.ForkAt, control.StopAt = ^uint64(0), ^uint64(0)
	control.Consumed, control.Echo, control.Lazy = 0, 0, 0
	if c.attempt.timing == record.TimingLazy {
		control.Lazy = 1
	}
	if c.opts.Echo != nil && c.last() {
		control.Echo = 1
	}
	if err := c.helloFree(control, forked); err != nil {
		return 0, err
	}
	if !c.last() {
		child := c.stages[c.step+1].rec.Manifest.Parent
		control.ForkThread, control.ForkAt = child.Thread, child.Ordinal
	} else if len(c.hooks) > 0 {
		control.StopThread, control.StopAt = c.hooks[0].At.Thread, c.hooks[0].At.Ordinal
	}
	if err := setPath(&control.LogPath, pathOf(stage.image)); err != nil {
		return 0, err
	}
	if err := setPath(&control.DataPath, pathOf(stage.data)); err != nil {
		return 0, err
	}
	c.watch.look(c.pid, c.control)
	c.loading = nil
	return 1, c.writeStruct(c.control, control)
}

// copyStart gives the dynamic linker what it had written down in the recording.
func (c *controller) copyStart(rec *record.Recording) error {
	pages, err := rec.StartPages()
	if err != nil {
		return &InputError{err}
	}
	for i := range pages {
		if _, err := c.memory.WriteAt(pages[i].Data[:], int64(pages[i].Addr)); err != nil {
			return err
		}
	}
	return nil
}

func setPath(field *[1024]byte, path string) error {
	*field = [1024]byte{}
	if len(path) >= len(field) {
		return fmt.Errorf("replay: the path %s is too long", path)
	}
	copy(field[:], path)
	return nil
}

func (c *controller) writeStruct(addr uint64, v any) error {
	p, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return err
	}
	_, err = c.memory.WriteAt(p, int64(addr))
	return err
}

// forked: the process that leads up to the one asked for has made it. It has
// served its turn.
func (c *controller) forked(t *thread) error {
	message, err := ptrace.EventMessage(t.tid)
	if err != nil {
		return err
	}
	if c.last() {
		return fmt.Errorf("replay: process %d made a process, which no replay does", c.pid)
	}
	child := int(message)
	memory, err := openMemory(child)
	if err != nil {
		return err
	}
	parent := c.pid
	c.memory.Close()
	c.pid, c.memory, c.control = child, memory, 0
	c.step++
	c.watch.look(child, 0)
	c.threads = map[int]*thread{child: {tid: child}}
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

// another reports whether a thread that reports itself is of a process that the
// replayed one is making. It stops when it has begun, which may be reported
// before the fork is. It must not go on before: it would ask what its parent's
// memory and recording answer.
func (c *controller) another(tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(status), "\nTgid:")
	own, _, _ := strings.Cut(rest, "\n")
	group, err := strconv.Atoi(strings.TrimSpace(own))
	return found && err == nil && group != c.pid
}

// sameBuild is for a file that is not the same one: a copy of it will do.
func sameBuild(path, want string) error {
	f, err := object.Open(path)
	if err != nil {
		return inputf("replay: %w", err)
	}
	defer f.Close()
	if got := f.BuildID(); want == "" || got != want {
		return inputf("replay: %s is not what was recorded any more: its build-id is %s, the recording has %s", path, orNone(got), orNone(want))
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}
