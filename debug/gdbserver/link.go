package gdbserver

import (
	"errors"
	"fmt"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

// threadLocal answers qGetTLSAddr:THREAD,OFFSET,LINK: where a thread has the thread-local variable at an offset in the block of the object with
// that struct link_map. gdb gives 0 for a program without a list of libraries.
func (s *Server) threadLocal(arguments string) (string, error) {
	number, rest, _ := strings.Cut(arguments, ",")
	thread, err := parseThread(number)
	if err != nil {
		return "", err
	}
	offset, node, err := parsePair(rest)
	if err != nil {
		return "", err
	}
	if thread == 0 {
		thread = s.selected
	}
	var at evidence.Addr
	err = s.inspectImage(func(p *image.Process) error {
		m := p.ModuleOfLink(evidence.Addr(node))
		if m == nil {
			return fmt.Errorf("thread-local storage: no object is loaded that has its struct link_map at %#x", node)
		}
		for i := range p.Threads {
			if t := &p.Threads[i]; t.Ref.Number == int(thread) {
				at, err = p.ThreadLocal(t, m)
				return err
			}
		}
		return fmt.Errorf("thread-local storage: there is no thread %d", thread)
	})
	if err != nil {
		if s.Note != nil {
			s.Note(oneLine(err.Error()))
		}
		return "", err
	}
	return fmt.Sprintf("%x", uint64(at)+offset), nil
}

// inspectImage calls a function with the process that gdb sees, opened for analysis.
func (s *Server) inspectImage(call func(*image.Process) error) error {
	return s.Session.Inspect(func(x debug.State) error {
		switch x := x.(type) {
		case *replay.Copy:
			p, err := x.Process()
			if err != nil {
				return err
			}
			return errors.Join(call(p), p.Close())
		case *replay.DebugStop: // which closes it
			p, err := x.Process()
			if err != nil {
				return err
			}
			return call(p)
		}
		return fmt.Errorf("gdbserver: a process of %T", x)
	})
}
