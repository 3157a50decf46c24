package failure

import (
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

// Offsets in the frame that the kernel pushes for a signal handler, from the
// stack pointer at the trampoline, where pretcode is already popped
// (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h).
const (
	frameError   = 40 + 152
	frameTrap    = 40 + 160
	frameCR2     = 40 + 176
	frameInfo    = 304
	frameInfoTop = frameInfo + 24
)

// Exceptions of the processor (Intel SDM volume 3, table 6-1).
const (
	trapDivide     = 0
	trapInvalid    = 6
	trapProtection = 13
	trapPage       = 14
)

// trapSignals are the signals that the kernel makes of an exception
// (arch/x86/kernel/traps.c, mm/fault.c).
var trapSignals = map[uint64][]unix.Signal{
	trapDivide: {unix.SIGFPE}, 1: {unix.SIGTRAP}, 3: {unix.SIGTRAP}, 4: {unix.SIGSEGV}, 5: {unix.SIGSEGV},
	trapInvalid: {unix.SIGILL}, 11: {unix.SIGBUS}, 12: {unix.SIGBUS}, trapProtection: {unix.SIGSEGV},
	trapPage: {unix.SIGSEGV, unix.SIGBUS}, 16: {unix.SIGFPE}, 17: {unix.SIGBUS}, 19: {unix.SIGFPE},
}

// trapCodes are the codes of the exceptions that have one (arch/x86/kernel/traps.c).
var trapCodes = map[uint64]int{trapDivide: fpeIntDiv, trapInvalid: illOperand}

// pageWasPresent is the bit of a page fault's error code that distinguishes a forbidden access from
// an access to unmapped memory.
const pageWasPresent = 1

// handlerFrames are the frames of signal handlers on a stack, with the signals that interrupted the
// program there.
type handlerFrames struct {
	stack *callStack
	// recorded are the signals whose handlers the thread was in, the outermost first.
	recorded []evidence.Signal
}

// handled looks for a signal handler on the stack that turned a fault into the signal that ended
// the process, and moves the judgement to the fault. If a handler of SIGABRT raised it again, the
// abort is judged.
func (h *handlerFrames) handled(f *evidence.Failure) {
	if !sentByProcess(f.Signal.Code) {
		return
	}
	for i := range h.stack.frames {
		if h.stack.frames[i].Kind != evidence.SignalFrame || i+1 >= len(h.stack.frames) {
			continue
		}
		if f.Signal.Number == int(unix.SIGABRT) && h.stack.abortedAt(i+1) {
			h.stack.drop(i + 1)
			h.stack.cutHandlers++
			h.handled(f)
			return
		}
		inner, ok := h.interruption(i)
		if !ok {
			continue
		}
		if inner.Number != f.Signal.Number || sentByProcess(inner.Code) {
			f.Message = evidence.Say("the handler of " + inner.Name + " raised " + f.Signal.Name)
		}
		f.Signal = inner
		h.stack.drop(i + 1)
		return
	}
}

// exitedInHandler does the same as handled for a process that a handler ended with a status: a
// handler of a fault, or of the SIGABRT of an abort. It reports whether there is such a handler on
// the stack.
func (h *handlerFrames) exitedInHandler(f *evidence.Failure, status int) bool {
	for i := range h.stack.frames {
		if h.stack.frames[i].Kind != evidence.SignalFrame || i+1 >= len(h.stack.frames) {
			continue
		}
		inner, ok := h.interruption(i)
		if !ok && h.stack.abortedAt(i+1) {
			inner, ok = completeSignal(evidence.Signal{Number: int(unix.SIGABRT), Code: siTkill, SenderPID: h.stack.pid}), true
		}
		if !ok {
			continue
		}
		f.Message = evidence.Say(fmt.Sprintf("the handler of %s ended the process with status %d", inner.Name, status))
		f.Signal, f.Status = inner, status
		h.stack.drop(i + 1)
		return true
	}
	return false
}

// raising bounds the frames in the C library between the place where abort raises its signal and
// abort itself, including inlined functions.
const raising = 6

// abortedAt reports whether the code from a frame outward was in abort when a signal arrived. abort
// does not wait, so the signal is its own.
func (k *callStack) abortedAt(frame int) bool {
	for i := frame; i < min(frame+raising, len(k.frames)); i++ {
		if k.frames[i].Kind == evidence.SignalFrame {
			return false
		}
		for _, site := range k.sitesOf(&k.frames[i]) {
			if plainName(site.Function) == "abort" {
				return true
			}
		}
	}
	return false
}

// handledAt is the recorded signal whose handler interrupted a frame; nil if that is not known.
func (h *handlerFrames) handledAt(frame int) *evidence.Signal {
	inner := 0
	for i := range frame {
		if h.stack.frames[i].Kind == evidence.SignalFrame {
			inner++
		}
	}
	// The handlers of frames that were cut off are the innermost.
	at := len(h.recorded) - 1 - h.stack.cutHandlers - inner
	if at < 0 {
		return nil
	}
	return completeSignal(h.recorded[at])
}

// IsFault reports whether a failing instruction raises the signal: SIGSEGV, SIGBUS, SIGFPE or
// SIGILL. Handlers of other signals act for the program: they may end it in good order, or fail
// themselves.
func IsFault(number int) bool {
	return slices.Contains([]unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL}, unix.Signal(number))
}

// interruption reads for which fault of the program a handler was called, or, with a recording, for
// which fault's signal sent by a process. ok is false if the signal has another source.
func (h *handlerFrames) interruption(frame int) (*evidence.Signal, bool) {
	if sig := h.handledAt(frame); sig != nil {
		return sig, IsFault(sig.Number) || sig.Number == int(unix.SIGSYS) && !sentByProcess(sig.Code)
	}
	var b [frameInfoTop]byte
	if _, err := h.stack.ReadMemory(h.stack.frames[frame].Registers.SP(), b[:]); err != nil {
		return nil, false
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	trap := word(frameTrap)
	number, code := int(int32(word(frameInfo))), int(int32(word(frameInfo+8)))
	made := slices.Contains(trapSignals[trap], unix.Signal(number)) || unix.Signal(number) == unix.SIGSYS && code == sysSeccomp
	// Without SA_SIGINFO that memory is what the stack held before.
	fits := word(frameInfo)>>32 == 0 && (trapCodes[trap] == 0 || trapCodes[trap] == code)
	if made && fits && !sentByProcess(code) {
		sig := evidence.Signal{Number: number, Code: code, Addr: evidence.Addr(word(frameInfo + 16)), HasAddr: code != siginfo.Kernel}
		return completeSignal(sig), true
	}
	return h.trapped(frame, trap, word(frameError), evidence.Addr(word(frameCR2)))
}

// trapped derives the signal from the processor's record, because a handler without SA_SIGINFO gets
// no siginfo. The record may be that of an older fault, or of none, which looks like that of a
// division. So the interrupted instruction must fit.
func (h *handlerFrames) trapped(frame int, trap, code uint64, cr2 evidence.Addr) (*evidence.Signal, bool) {
	inner := newProcessor(h.stack.process, h.stack.above(frame+1).registers())
	sig := evidence.Signal{HasAddr: true, Addr: inner.pc()}
	switch {
	case trap == trapPage && inner.accesses(cr2):
		sig.Number, sig.Code, sig.Addr = int(unix.SIGSEGV), segvMapErr, cr2
		if code&pageWasPresent != 0 {
			sig.Code = segvAccErr
		}
	case trap == trapDivide && inner.divides():
		sig.Number, sig.Code = int(unix.SIGFPE), fpeIntDiv
	case trap == trapInvalid && (inner.inst == nil || inner.inst.Op == "ud2"):
		sig.Number, sig.Code = int(unix.SIGILL), illOperand
	default:
		return nil, false
	}
	return completeSignal(sig), true
}

// accesses reports whether the instruction under judgement touches addr.
func (c *processor) accesses(addr evidence.Addr) bool {
	if c.pc() == addr {
		return true
	}
	at := c.culpritFor(addr)
	return at.op != nil && addr >= at.addr && uint64(addr-at.addr) < uint64(max(at.op.Size, 1))
}
