package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/replay/record/eventlog"
)

// callWait is what a thread waits for in a system call, and whether that is a descriptor, the
// call's first argument.
type callWait struct {
	what         string
	ofDescriptor bool
}

var callWaits = map[uint64]callWait{
	unix.SYS_READ: {"data from", true}, unix.SYS_READV: {"data from", true}, unix.SYS_RECVFROM: {"data from", true}, unix.SYS_RECVMSG: {"data from", true},
	unix.SYS_WRITE: {"room in", true}, unix.SYS_WRITEV: {"room in", true}, unix.SYS_SENDTO: {"room in", true}, unix.SYS_SENDMSG: {"room in", true},
	unix.SYS_ACCEPT: {"a connection to", true}, unix.SYS_ACCEPT4: {"a connection to", true}, unix.SYS_CONNECT: {"the connection of", true},
	unix.SYS_EPOLL_WAIT: {"events of", true}, unix.SYS_EPOLL_PWAIT: {"events of", true}, unix.SYS_FLOCK: {"the lock of", true},
	unix.SYS_POLL: {"one of several descriptors", false}, unix.SYS_PPOLL: {"one of several descriptors", false},
	unix.SYS_SELECT: {"one of several descriptors", false}, unix.SYS_PSELECT6: {"one of several descriptors", false},
	unix.SYS_WAIT4: {"a child process", false}, unix.SYS_WAITID: {"a child process", false},
	unix.SYS_PAUSE: {"a signal", false}, unix.SYS_RT_SIGSUSPEND: {"a signal", false}, unix.SYS_RT_SIGTIMEDWAIT: {"a signal", false},
	unix.SYS_NANOSLEEP: {"a time to pass", false}, unix.SYS_CLOCK_NANOSLEEP: {"a time to pass", false},
	unix.SYS_MSGRCV: {"a message", false}, unix.SYS_SEMOP: {"a System V semaphore", false},
}

// nameCallWaits names the system call of each thread that does not wait for another thread, at the
// end of a replay.
func (w waitReader) nameCallWaits() error {
	if !w.cut || !w.ofRecording(w.process) {
		return nil
	}
	var kinds map[uint32]string
	for i := range w.waiting {
		if w.waiting[i].Known() {
			continue
		}
		_, f := w.restsIn(i)
		if f == nil || f.Kind != agent.EntrySyscall {
			continue
		}
		wait, known := callWaits[f.RAX]
		if !known {
			continue
		}
		if kinds == nil {
			var err error
			if kinds, err = descriptorKinds(w.failing[0].Log); err != nil {
				return err
			}
		}
		w.waiting[i] = failure.WaitText{Object: wait.text(uint32(f.RDI), kinds) + " (" + eventlog.SyscallName(f.RAX) + ")"}
	}
	return nil
}

func (w *callWait) text(descriptor uint32, kinds map[uint32]string) string {
	if !w.ofDescriptor {
		return w.what
	}
	text := fmt.Sprintf("%s descriptor %d", w.what, descriptor)
	if kind := kinds[descriptor]; kind != "" {
		text += ", " + kind
	}
	return text
}

// descriptorKinds are the descriptors that a recording's process had at its end, by the calls that
// made them. Descriptors from before its start are not known.
func descriptorKinds(log *eventlog.Log) (map[uint32]string, error) {
	kinds := map[uint32]string{0: "standard input"}
	for e, err := range log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Kind == eventlog.KindSyscall && e.Result >= 0 {
			noteDescriptors(kinds, e)
		}
	}
	return kinds, nil
}

func noteDescriptors(kinds map[uint32]string, e *eventlog.Event) {
	made := uint32(e.Result)
	switch e.Object {
	case unix.SYS_PIPE, unix.SYS_PIPE2, unix.SYS_SOCKETPAIR:
		kind := "a pipe"
		if e.Object == unix.SYS_SOCKETPAIR {
			kind = "a socket"
		}
		for i := range e.Payloads {
			if d := e.Payloads[i].Data; e.Payloads[i].Kind == eventlog.PayloadOut && len(d) >= 8 {
				kinds[binary.LittleEndian.Uint32(d)], kinds[binary.LittleEndian.Uint32(d[4:])] = kind, kind
			}
		}
	case unix.SYS_SOCKET, unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		kinds[made] = "a socket"
	case unix.SYS_EVENTFD, unix.SYS_EVENTFD2:
		kinds[made] = "an event counter (eventfd)"
	case unix.SYS_SIGNALFD, unix.SYS_SIGNALFD4:
		kinds[made] = "a queue of signals (signalfd)"
	case unix.SYS_TIMERFD_CREATE:
		kinds[made] = "a timer (timerfd)"
	case unix.SYS_OPEN, unix.SYS_OPENAT:
		kinds[made] = "a file"
		for i := range e.Payloads {
			if e.Payloads[i].Kind == eventlog.PayloadText {
				kinds[made] = strconv.Quote(string(e.Payloads[i].Data))
			}
		}
	case unix.SYS_DUP, unix.SYS_DUP2, unix.SYS_DUP3:
		if len(e.Args) > 0 {
			kinds[made] = kinds[uint32(e.Args[0])]
		}
	case unix.SYS_CLOSE:
		if len(e.Args) > 0 {
			delete(kinds, uint32(e.Args[0]))
		}
	}
}
