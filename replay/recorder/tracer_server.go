package recorder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/schedule"
	"diagnose/replay/recorder/sites"
)

// forkServer is a process of a program in which the engine has started and nothing of the
// program has run (agent.TrapReady). It forks on request, and then asks again: so a run does
// not load the program or patch its code. The child is like a newly started process, at the
// same addresses.
type forkServer struct {
	pid       int
	recording *recording // the recording of the server, copied for its forks
	// stands: the server is stopped at its question, with these registers.
	stands bool
	regs   ptrace.Registers
}

// errServerLost: the next run must start the program again.
var errServerLost = errors.New("record: the process that schedules are forks of is gone, or does not fork")

// serverEnded is the end of a fork server in a fork.
type serverEnded struct{ stop ptrace.Stop }

func (e *serverEnded) Error() string { return fmt.Sprintf("record: the fork server met %v", e.stop) }

// errForkRefused: the kernel does not create a process. The server asks again.
var errForkRefused = errors.New("record: the fork server cannot fork")

// ready handles a program that could now become a fork server. If it does, a fork of it is the
// program.
func (t *tracer) ready(x *tracee, regs *ptrace.Registers) error {
	p := x.process
	if !t.serves || t.server != nil || p != t.tracees.main || p.recording == nil || len(t.tracees.processes) != 1 {
		return x.answer(regs, 0)
	}
	s := &forkServer{pid: p.pid, recording: p.recording, stands: true, regs: *regs}
	child, err := s.fork(t.order.Hunt)
	var ended *serverEnded
	switch {
	case errors.As(err, &ended):
		return t.handle(ended.stop)
	case errors.Is(err, errForkRefused):
		return x.answer(&s.regs, 0)
	case err != nil:
		return err
	}
	delete(t.tracees.threads, x.tid)
	delete(t.tracees.processes, p.pid)
	t.run.recordings = nil
	t.server = s
	return t.forked(child)
}

// startFork starts a run by a fork of the server.
func (t *tracer) startFork() error {
	child, err := t.server.fork(t.order.Hunt)
	if err == nil {
		err = t.forked(child)
	}
	if err != nil {
		t.server.end()
		t.server = nil
		return errServerLost
	}
	return nil
}

// forked makes a server's child the program. The child continues at its first stop, which has
// yet to be waited for.
func (t *tracer) forked(pid int) error {
	r, err := t.server.recordingOf(t.run, pid)
	if err != nil {
		launch.Discard(pid)
		return err
	}
	t.tracees.main = t.tracees.newProcess(pid, &ancestor{})
	t.run.main = pid
	t.tracees.main.recording = r
	t.link.tell(notice{Started: pid})
	return nil
}

// fork makes a stopped server create a child that follows a schedule. It returns the child, and
// has not waited for it.
func (s *forkServer) fork(h *record.Hunt) (int, error) {
	if err := schedule.Replace(h, s.recording.memory); err != nil {
		return 0, err
	}
	s.stands = false
	s.regs.Rax, s.regs.Orig_rax = 1, ^uint64(0)
	if err := ptrace.SetRegisters(s.pid, &s.regs); err != nil {
		return 0, err
	}
	for {
		if err := ptrace.Cont(s.pid, 0); err != nil {
			return 0, err
		}
		stop, err := ptrace.WaitFor(s.pid)
		switch {
		case err != nil:
			return 0, err
		case stop.Kind == ptrace.Ended:
			return 0, &serverEnded{stop}
		case isFork(stop):
			child, err := ptrace.EventMessage(s.pid)
			if err == nil {
				err = ptrace.Cont(s.pid, 0)
			}
			return int(child), err
		}
		if asks, err := s.asks(stop); err != nil || asks {
			return 0, errors.Join(err, errForkRefused)
		}
	}
}

// asks reports whether the server is again stopped where it waits for the next run.
func (s *forkServer) asks(stop ptrace.Stop) (bool, error) {
	if stop.Kind != ptrace.SignalStop {
		return false, nil
	}
	info, err := ptrace.GetSiginfo(s.pid)
	if err != nil {
		return false, err
	}
	if s.regs, err = ptrace.GetRegisters(s.pid); err != nil {
		return false, err
	}
	s.stands = isQuestion(s.pid, stop.Signal, &info, &s.regs) && s.regs.Rax == agent.TrapReady
	return s.stands, nil
}

// serverStopped handles a stop of the server while a fork of it runs. Signals are for the
// program, which itself receives those sent to its group.
func (t *tracer) serverStopped(stop ptrace.Stop) error {
	if stop.Kind == ptrace.Ended {
		t.server.recording.memory.Close()
		t.server = nil
		return nil
	}
	if asks, err := t.server.asks(stop); err != nil || asks {
		return err
	}
	return ptrace.Cont(t.server.pid, 0)
}

// end ends a server.
func (s *forkServer) end() {
	unix.Kill(s.pid, unix.SIGKILL)
	for {
		stop, err := ptrace.WaitFor(s.pid)
		if err != nil || stop.Kind == ptrace.Ended {
			break // an error says that it has ended
		}
	}
	s.recording.memory.Close()
}

// recordingOf is the recording of a child of the server, with the child's memory.
func (s *forkServer) recordingOf(run *run, pid int) (*recording, error) {
	memory, err := ptrace.OpenMemory(pid)
	if err != nil {
		return nil, err
	}
	r := *s.recording
	r.run, r.memory, r.hunt = run, memory, run.order.Hunt
	r.patches = r.patches.Clone()
	if r.hunt.Globals {
		r.points = r.points.Clone(memory)
	} else {
		r.points = sites.Points{}
	}
	r.control.PID = uint32(pid)
	r.manifest = record.Manifest{PID: pid, Hunt: &record.HuntedRun{Hunt: *r.hunt}}
	run.recordings = append(run.recordings, &r)
	return &r, nil
}
