package eventlog

import (
	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

// EndRequest is a signal from outside of the process that asked it to end, such as Ctrl-C, and that the program took itself: by a
// handler, or by a call that waits for signals.
type EndRequest struct {
	Signal evidence.Signal
	// Before is the event by which a thread took it. The process had come that far.
	Before evidence.Moment
	// Rests tells by thread how it was then, by the first event that it had from there on.
	Rests map[uint32]Rest
}

// Rest is how a thread was between two of its events.
type Rest struct {
	// Relocked counts the mutexes that it had taken without an event.
	Relocked uint64
	// Condition is the condition variable that it waited for, 0: none.
	Condition evidence.Addr
}

// EndRequest is the last one of a process with this id; nil: there is none.
func (l *Log) EndRequest(pid int) (*EndRequest, error) {
	var last *EndRequest
	ticket := uint64(0)
	interrupted := map[uint32]Rest{} // by thread, of the waits that a signal comes next to
	for e, err := range l.Ordered() {
		if err != nil {
			if Damaged(err) {
				break
			}
			return nil, err
		}
		if r := requestOf(e, pid); r != nil {
			last, ticket = r, e.Ticket
			if rest, waited := interrupted[e.Thread]; waited {
				r.Before.Ordinal--
				r.Rests[e.Thread] = rest
			}
		}
		delete(interrupted, e.Thread)
		if e.Flags&FlagInterrupted != 0 {
			interrupted[e.Thread] = e.rest(e.Ticket)
		}
		if last == nil {
			continue
		}
		if _, known := last.Rests[e.Thread]; !known {
			last.Rests[e.Thread] = e.rest(ticket)
		}
	}
	return last, nil
}

// requestOf is the request that a thread took with an event; nil: it took none.
func requestOf(e *Event, pid int) *EndRequest {
	r := &EndRequest{Before: evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal}, Rests: map[uint32]Rest{}}
	var info []byte
	switch {
	case e.Kind == KindSignal:
		r.Signal, info = siginfo.Signal(int(e.Object)), payload(e, PayloadInfo)
	case e.Kind == KindSyscall && e.Object == unix.SYS_RT_SIGTIMEDWAIT && e.Result > 0:
		r.Signal, info = siginfo.Signal(int(e.Result)), payload(e, PayloadOut)
	default:
		return nil
	}
	if s, ok := siginfo.Parse(info); ok {
		r.Signal = s
	}
	if !AsksToEnd(r.Signal.Number) || r.Signal.SenderPID == pid {
		return nil
	}
	return r
}

// AsksToEnd reports whether a signal is one by which terminals, kill(1) and service managers ask a process to end.
func AsksToEnd(signal int) bool {
	switch unix.Signal(signal) {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
		return true
	}
	return false
}

func payload(e *Event, kind PayloadKind) []byte {
	for i := range e.Payloads {
		if e.Payloads[i].Kind == kind {
			return e.Payloads[i].Data
		}
	}
	return nil
}

// rest is how the thread of an event was at a ticket that is not later, after its event before this one.
func (e *Event) rest(ticket uint64) Rest {
	r := Rest{Relocked: e.Skipped}
	if e.Kind == KindCond && e.Flags&FlagArrived != 0 && len(e.Args) > 1 && e.Args[len(e.Args)-1] < ticket {
		r.Condition = evidence.Addr(e.Object)
	}
	return r
}
