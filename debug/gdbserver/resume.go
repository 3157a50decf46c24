package gdbserver

import (
	"errors"
	"strings"

	"diagnose/debug"
	"diagnose/replay"
)

// span is a range of addresses, which a thread is stepped to leave.
type span struct{ start, end uint64 }

// resume answers vCont. The recording says when which thread runs, so threads that gdb wants to keep stopped run, too.
func (s *Server) resume(actions string) (string, error) {
	if reply := s.takeHeld(); reply != "" {
		return reply, nil
	}
	list := strings.Split(actions, ";")
	for _, action := range list {
		what, thread, _ := strings.Cut(action, ":")
		number, err := parseThread(thread)
		if err != nil {
			return "", err
		}
		if number == 0 {
			number = s.Session.Stop().Thread
		}
		if what == "" {
			continue
		}
		var steps uint32
		if what[0] != 'c' && what[0] != 'C' {
			steps = number
		}
		if l := s.Session.Left(); l != nil {
			return left{s, l}.resume(what, steps)
		}
		if reply, called, err := (copied{s}).run(steps); called || err != nil {
			return reply, err
		}
		switch what[0] {
		case 's', 'S':
			if len(list) == 1 && s.goal != nil && !s.goal.IsOf(number) {
				return s.stepOver(number)
			}
			return s.forward(number, span{})
		case 'r':
			start, end, err := parsePair(what[1:])
			if err != nil {
				return "", err
			}
			return s.forward(number, span{start, end})
		}
	}
	return s.forward(0, span{})
}

// stepOver steps a thread while a goal waits that may be in another thread. Where gdb steps one thread alone, it passes a breakpoint, and takes a stop
// of another thread for an error of its own (gdb/infrun.c, finish_step_over). The resume that follows leads to the goal.
func (s *Server) stepOver(thread uint32) (string, error) {
	_, err := s.Session.Forward(debug.Halts{}, thread)
	return s.moved(err)
}

// forward continues, or steps a thread once and then while it is in a range.
func (s *Server) forward(step uint32, within span) (string, error) {
	stays := s.staying
	s.staying = false
	if to := s.goal; to != nil {
		s.goal = nil
		if err := s.Session.Go(*to); err != nil {
			return s.moved(err)
		}
		s.gone = true
		return s.moved(nil)
	}
	if stays {
		return s.stay()
	}
	halts := s.halts()
	for {
		stop, err := s.Session.Forward(halts, step)
		if err != nil {
			return s.moved(err)
		}
		if stop.Kind != replay.StopStep || stop.PC < within.start || stop.PC >= within.end || s.atBreakpoint(stop.PC) {
			return s.moved(nil)
		}
	}
}

// stay is the stop reply for a stop that gdb knows, after the copy was given up.
func (s *Server) stay() (string, error) {
	s.forget()
	reply, err := s.stayReply()
	if err != nil {
		return "", err
	}
	return s.withLibraries(reply)
}

func (s *Server) stayReply() (string, error) {
	switch stop := s.Session.Stop(); {
	case stop.Kind == replay.StopEnd:
		return s.stopReply()
	case s.atBreakpoint(stop.PC):
		return s.threadReply(gdbTrap, "swbreak:;", stop.Thread)
	default:
		return s.threadReply(gdbNone, "", stop.Thread)
	}
}

// halts are where gdb wants the program to stop.
func (s *Server) halts() debug.Halts {
	h := s.points.halts()
	h.Signals = s.signals
	return h
}

func (s *Server) atBreakpoint(pc uint64) bool {
	for _, at := range s.points.breakpoints {
		if uint64(at) == pc {
			return true
		}
	}
	return false
}

// backward answers bc and bs.
func (s *Server) backward(how string) (string, error) {
	if reply := s.takeHeld(); reply != "" {
		return reply, nil
	}
	s.staying = false
	if l := s.Session.Left(); l != nil {
		return left{s, l}.backward()
	}
	// What gdb does backwards is never a call.
	changes, err := s.Session.Changes().Copied()
	if err != nil {
		return "", err
	}
	if changes != nil {
		if err := (copied{s}).drop(true); err != nil {
			return "", err
		}
	}
	switch how {
	case "c":
		_, err = s.Session.Backward(s.halts())
	case "s":
		_, err = s.Session.BackStep(s.Session.Stop().Thread)
	default:
		return unsupported, nil
	}
	return s.moved(err)
}

// moved is the stop reply after a move.
func (s *Server) moved(err error) (string, error) {
	s.forget()
	reply, err := s.moveReply(err)
	if err != nil {
		return "", err
	}
	return s.withLibraries(reply)
}

func (s *Server) moveReply(err error) (string, error) {
	switch {
	case errors.Is(err, debug.ErrEnd):
		s.reason = "replaylog:end;"
	case errors.Is(err, debug.ErrBegin):
		s.reason = "replaylog:begin;"
	case errors.Is(err, debug.ErrInterrupted):
		reply, err := s.stopReply()
		if len(reply) > 3 {
			reply = reply[:1] + "02" + reply[3:]
		}
		return reply, err
	case err != nil:
		return "", err
	}
	return s.stopReply()
}
