package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// WatchesWork returns nil if this machine can stop a replay at the accesses to a word for a debugger. If it cannot, the error
// is an *UnsupportedError.
func WatchesWork() error {
	err := ptrace.DebugRegistersFire()
	if errors.Is(err, ptrace.ErrNoDebugRegisters) {
		return &UnsupportedError{Backend: BackendPtrace, Err: err}
	}
	return err
}

// DebugThread is a thread of a process that is stopped for a debugger.
type DebugThread struct {
	// Number is the thread's number in the recording, Name the one that the kernel knows.
	Number uint32
	Name   string
	tid    int
}

// Threads returns the threads that have begun, by number.
func (s *DebugStop) Threads() []DebugThread { return threadsOf(s.c.Process) }

func threadsOf(p *tracee.Process) []DebugThread {
	var list []DebugThread
	for _, t := range p.SortedThreads() {
		if t.Index == 0 {
			continue
		}
		x := DebugThread{Number: t.Index, tid: t.TID}
		// A thread that is ending has no name any more.
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", p.PID, t.TID)); err == nil {
			x.Name = strings.TrimSpace(string(name))
		}
		list = append(list, x)
	}
	return list
}

// StopAtEvents makes the process stop at those of a list of events that have not occurred yet, and at no others.
func (s *DebugStop) StopAtEvents(events []evidence.Moment) error {
	control, err := s.c.ReadControl()
	if err != nil {
		return err
	}
	ordinals, err := s.c.ordinals(control)
	if err != nil {
		return err
	}
	occurred := func(at evidence.Moment) bool { return at.Ordinal <= ordinals[at.Thread] }
	var hooks []Hook
	for _, at := range events {
		if !occurred(at) {
			hooks = append(hooks, Hook{At: evidence.Moment{Thread: at.Thread, Ordinal: at.Ordinal}, debug: true})
		}
	}
	hooks, err = orderHooks(s.c.Stage().Schedule, hooks)
	if err != nil {
		return err
	}
	queue := s.c.hooks
	if len(queue.list) > 0 && occurred(queue.list[0].At) {
		// A thread that has done it is about to say so.
		hooks = slices.Insert(hooks, 0, queue.list[0])
	}
	if queue.list = hooks; len(hooks) == 0 {
		return s.c.StopAt(0, ^uint64(0))
	}
	return s.c.StopAt(hooks[0].At.Thread, hooks[0].At.Ordinal)
}

// ThreadRegisters returns a thread's registers, as the program has them: the general ones as struct user_regs_struct of
// sys/user.h, the others as an XSAVE area (Intel SDM volume 1, 13.4).
func (s *DebugStop) ThreadRegisters(number uint32) (general, extended []byte, err error) {
	return threadRegisters(s.c.Process, number)
}

func threadRegisters(p *tracee.Process, number uint32) (general, extended []byte, err error) {
	t := p.ThreadNumbered(number)
	if t == nil {
		return nil, nil, fmt.Errorf("replay: there is no thread %d", number)
	}
	regs, err := p.NamedRegisters(t)
	if err != nil {
		return nil, nil, err
	}
	if general, err = binary.Append(nil, binary.LittleEndian, &regs); err != nil {
		return nil, nil, err
	}
	extended, err = ptrace.GetRegset(t.TID, ptrace.RegsetXState)
	return general, extended, err
}

// Auxv returns the auxiliary vector with which the program was started.
func (s *DebugStop) Auxv() ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/auxv", s.c.PID))
}
