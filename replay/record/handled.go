package record

import (
	"encoding/binary"
	"errors"

	"diagnose/agent"
	"diagnose/evidence"
)

// HandledSignal is a signal that a thread received and whose handler did not return: the thread
// was in it when its log ended, or had left it by a jump.
type HandledSignal struct {
	// Thread and Ordinal identify the event.
	Thread  uint32
	Ordinal uint64
	Place   SignalPlace
	// PC is the instruction that it interrupted.
	PC evidence.Addr
	// Info is the siginfo_t that the kernel gave.
	Info []byte
	// Registers are the interrupted general registers: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax,
	// rcx, rsp, rip, flags.
	Registers [18]uint64
}

// Handled returns the signals of a thread whose handlers did not return, the outermost first.
// A log that was cut off is read up to that point.
func (l *Log) Handled(thread uint32) ([]HandledSignal, error) {
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
			s, err := e.handled()
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		case KindSignalEnd:
			if len(list) > 0 {
				list = list[:len(list)-1]
			}
		}
	}
	return list, nil
}

func (e *Event) handled() (HandledSignal, error) {
	s := HandledSignal{Thread: e.Thread, Ordinal: e.Ordinal}
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
				return s, &CorruptError{File: LogName, Offset: e.Offset, What: "a signal's registers: " + err.Error()}
			}
			s.Registers = state.Registers
		}
	}
	return s, nil
}
