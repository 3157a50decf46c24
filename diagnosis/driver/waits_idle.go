package driver

import (
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// idle says of each thread, where a recording ends, whether it does anything for the others: a thread that only polls, while all others
// have had no event for long, does not, nor does one that waits for a signal. The main thread counts always: a program that polls there
// waits for work.
func (w waitReader) idle() ([]failure.Idle, error) {
	if !w.cut || !w.ofRecording(w.process) {
		return nil, nil
	}
	tails := tails{}
	for e, err := range w.failing[0].Log.Ordered() {
		if err != nil && !eventlog.Damaged(err) {
			return nil, err
		}
		if err != nil {
			break
		}
		tails.add(e)
	}
	polls := tails.polls()
	list := make([]failure.Idle, len(w.process.Threads))
	for i := range list {
		thread := uint32(w.process.Threads[i].Ref.Recorded)
		switch {
		case thread == 1:
		case polls[thread]:
			list[i] = failure.Polls
		case w.awaitsSignal(i):
			list[i] = failure.AwaitsSignal
		}
	}
	return list, nil
}

// awaitsSignal reports whether a thread of a replay rests in a system call that only a signal ends.
func (w waitReader) awaitsSignal(i int) bool {
	_, f := w.restsIn(i)
	if f == nil || f.Kind != agent.EntrySyscall {
		return false
	}
	return f.RAX == unix.SYS_PAUSE || f.RAX == unix.SYS_RT_SIGSUSPEND || f.RAX == unix.SYS_RT_SIGTIMEDWAIT && f.RDX == 0
}

// A thread polls if its last events are so many equal rounds of at most so many events.
const (
	pollRounds  = 10
	mostInRound = 8
)

// tails has the last events of each thread.
type tails map[uint32]*tail

type tail struct {
	events [pollRounds * mostInRound]tailEvent
	count  uint64
}

// tailEvent is what two rounds of a loop that polls have in common.
type tailEvent struct {
	kind    eventlog.Kind
	timeout bool
	object  uint64
	site    evidence.Addr
	ticket  uint64
}

func (t tails) add(e *eventlog.Event) {
	of := t[e.Thread]
	if of == nil {
		of = &tail{}
		t[e.Thread] = of
	}
	of.events[of.count%uint64(len(of.events))] = tailEvent{kind: e.Kind, object: e.Object, site: e.Site, ticket: e.Ticket, timeout: timedOut(e)}
	of.count++
}

// timedOut reports whether a wait ended because its time was over.
func timedOut(e *eventlog.Event) bool {
	switch e.Kind {
	case eventlog.KindCond, eventlog.KindSem:
		return e.Result == int64(unix.ETIMEDOUT)
	case eventlog.KindSyscall:
		switch e.Object {
		case unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_SELECT, unix.SYS_PSELECT6, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT:
			return e.Result == 0
		case unix.SYS_FUTEX:
			return e.Result == -int64(unix.ETIMEDOUT)
		}
	}
	return false
}

// polls are the threads that poll while no other thread has an event.
func (t tails) polls() map[uint32]bool {
	since := map[uint32]uint64{}
	for thread, of := range t {
		if ticket, polls := of.polls(); polls {
			since[thread] = ticket
		}
	}
	polls := map[uint32]bool{}
	for thread, from := range since {
		polls[thread] = true
		for other, of := range t {
			if _, too := since[other]; !too && of.at(0).ticket > from {
				polls[thread] = false
			}
		}
	}
	return polls
}

// at is the event before which a thread has had so many later ones.
func (t *tail) at(back int) *tailEvent {
	return &t.events[(t.count-1-uint64(back))%uint64(len(t.events))]
}

// polls returns the ticket with which the rounds begin.
func (t *tail) polls() (ticket uint64, polls bool) {
	for size := 1; size <= mostInRound; size++ {
		if t.count >= uint64(pollRounds*size) && t.repeats(size) {
			return t.at(pollRounds*size - 1).ticket, true
		}
	}
	return 0, false
}

func (t *tail) repeats(size int) bool {
	timeout := false
	for i := range pollRounds * size {
		e, first := t.at(i), t.at(i%size)
		if e.kind != first.kind || e.object != first.object || e.site != first.site || e.timeout != first.timeout {
			return false
		}
		timeout = timeout || e.timeout
	}
	return timeout
}
