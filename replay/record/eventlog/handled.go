package eventlog

import (
	"encoding/binary"
	"errors"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

// HandledSignal is a signal that a thread received and whose handler did not return: the thread
// was in it when its log ended, or had left it by a jump.
type HandledSignal struct {
	// Thread and Ordinal identify the event.
	Thread  uint32
	Ordinal uint64
	Place   SignalPlace
	// Number is the number of the signal.
	Number int
	// PC is the address of the interrupted instruction, Handler that of the program's handler.
	PC, Handler evidence.Addr
	// Info is the siginfo_t that the kernel gave.
	Info []byte
	// Registers are the interrupted general registers: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax,
	// rcx, rsp, rip, flags.
	Registers [18]uint64
}

// Signal reads Info; ok is false if the recording does not have it.
func (s *HandledSignal) Signal() (sig evidence.Signal, ok bool) { return siginfo.Parse(s.Info) }

// Handled returns the signals of a thread whose handlers did not return, the outermost first.
// A log that was cut off is read up to that point.
func (l *Log) Handled(thread uint32) ([]HandledSignal, error) {
	return l.handlers(thread, func(*HandledSignal, evidence.Addr) {})
}

// Returned calls each with the signals of a thread whose handlers returned, in the order of
// the returns, and with the instruction that the handler returned to. A log that was cut off is
// read up to that point.
func (l *Log) Returned(thread uint32, each func(s *HandledSignal, to evidence.Addr)) error {
	_, err := l.handlers(thread, each)
	return err
}

// HandledBy returns what an event says of the signal that it is.
func (l *Log) HandledBy(e *Event) (HandledSignal, error) { return l.handled(e) }

func (l *Log) handlers(thread uint32, each func(*HandledSignal, evidence.Addr)) ([]HandledSignal, error) {
	var list []HandledSignal
	for e, err := range l.Events(thread) {
		var cut *CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case KindSignal:
			s, err := l.handled(e)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		case KindSignalEnd:
			if at := returned(list, e); at >= 0 {
				each(&list[at], e.Site)
				list = slices.Delete(list, at, at+1)
			}
		}
	}
	return list, nil
}

// Faults returns the signals of a thread that were raised by faulting instructions and
// delivered to a handler of the program, in their order. A log that was cut off is read up
// to that point.
func (l *Log) Faults(thread uint32) ([]HandledSignal, error) {
	var list []HandledSignal
	for e, err := range l.Events(thread) {
		var cut *CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Kind != KindSignal {
			continue
		}
		s, err := l.handled(e)
		if err != nil {
			return nil, err
		}
		const ignore = 1 // SIG_DFL and SIG_IGN are no handlers
		if s.Place == PlaceFault && s.Handler > ignore {
			list = append(list, s)
		}
	}
	return list, nil
}

// returned is the index of the signal whose handler returned with an event; -1: it is none of
// them. The handlers inside of that one were left by a jump into it. A handler may change the
// instruction that it returns to; then the innermost handler of the signal counts. A
// program may leave handlers by jumps without end, so only the innermost ones are looked at.
func returned(list []HandledSignal, end *Event) int {
	const most = 1 << 14
	same := -1
	for i := len(list) - 1; i >= max(0, len(list)-most); i-- {
		if list[i].Number != int(end.Object) {
			continue
		}
		if list[i].PC == end.Site {
			return i
		}
		same = max(same, i)
	}
	return same
}

func (l *Log) handled(e *Event) (HandledSignal, error) {
	s := HandledSignal{Thread: e.Thread, Ordinal: e.Ordinal, Number: int(e.Object)}
	const handler = 6 // of the event's arguments (agent/src/engine/signal_deliver.c)
	if len(e.Args) > handler {
		s.Handler = evidence.Addr(e.Args[handler])
	}
	if len(e.Args) > 1 {
		s.Place, s.PC = SignalPlace(e.Args[0]), evidence.Addr(e.Args[1])
	}
	for _, p := range e.Payloads {
		switch p.Kind {
		case PayloadInfo:
			s.Info = append([]byte(nil), p.Data...)
		case PayloadRegisters:
			var state agent.RawSignalState
			if _, err := binary.Decode(p.Data, binary.LittleEndian, &state); err != nil {
				return s, &CorruptError{File: l.name, Offset: e.Offset, What: "a signal's registers: " + err.Error()}
			}
			s.Registers = state.Registers
		}
	}
	return s, nil
}
