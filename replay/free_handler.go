package replay

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"
	"diagnose/replay/ptrace"
)

// frameContext is the offset of the general registers in the frame that a signal's handler
// begins with, from its stack pointer: after the return address and the start of struct
// ucontext (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h). contextPC is the offset of
// the instruction pointer in them.
const (
	frameReturn  = 8
	frameContext = frameReturn + 40
	contextPC    = 16 * 8
	infoBytes    = 128 // of siginfo_t
)

// NoHandlerError says that a function was not called for a signal.
type NoHandlerError struct{ At evidence.Moment }

func (e *NoHandlerError) Error() string {
	return fmt.Sprintf("replay: the function at %v was not called for a signal", e.At)
}

// Interrupted returns the signal, and the instruction that it interrupted, of the handler at whose
// first instruction the thread is. The error is of type *NoHandlerError if the program called the
// function itself.
func (s *Stopped) Interrupted() (evidence.Addr, evidence.Signal, error) {
	regs, err := ptrace.GetRegisters(s.TID())
	if err != nil {
		return 0, evidence.Signal{}, err
	}
	if regs.Rdx != regs.Rsp+frameReturn {
		return 0, evidence.Signal{}, &NoHandlerError{s.Moment}
	}
	var word [8]byte
	info := make([]byte, infoBytes)
	_, err = s.ReadMemory(evidence.Addr(regs.Rsp+frameContext+contextPC), word[:])
	if err == nil {
		_, err = s.ReadMemory(evidence.Addr(regs.Rsi), info)
	}
	if err != nil {
		return 0, evidence.Signal{}, fmt.Errorf("replay: the handler at %v: %w", s.Moment, err)
	}
	signal, ok := siginfo.Parse(info)
	if !ok {
		return 0, evidence.Signal{}, &NoHandlerError{s.Moment}
	}
	return evidence.Addr(le.Uint64(word[:])), signal, nil
}

// SkipFault makes the handler of a fault, at whose first instruction the thread is, return at once
// to the instruction after the one that faulted. For a free replay.
func (s *Stopped) SkipFault() error {
	pc, _, err := s.Interrupted()
	if err != nil {
		return err
	}
	const longest = 15 // Intel SDM volume 2, 2.3.11
	code := make([]byte, longest)
	n, err := s.ReadMemory(pc, code)
	if err != nil && n == 0 {
		return fmt.Errorf("replay: the instruction at %v: %w", pc, err)
	}
	in, err := x86.Decode(code[:n], uint64(pc))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	regs, err := ptrace.GetRegisters(s.TID())
	if err != nil {
		return err
	}
	var next [8]byte
	le.PutUint64(next[:], uint64(pc)+uint64(in.Len))
	if err := s.WriteMemory(evidence.Addr(regs.Rsp+frameContext+contextPC), next[:]); err != nil {
		return fmt.Errorf("replay: the handler at %v: %w", s.Moment, err)
	}
	return skipCall(s)
}
