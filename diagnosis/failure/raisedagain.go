package failure

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

// Offsets in the kernel's frame, from the address of its ucontext on (handler.go), and how far that
// may be below the interrupted stack pointer: the red zone, the extended state, of which AMX alone
// takes 8 KiB, and the frame.
const (
	frameRegisters = 40
	frameBytes     = frameInfo + 128
	frameBelow     = 32 << 10
)

// frameOrder are the registers in a struct sigcontext (uapi/asm/sigcontext.h).
var frameOrder = []image.Register{image.R8, image.R9, image.R10, image.R11, image.R12, image.R13, image.R14, image.R15, image.RDI,
	image.RSI, image.RBP, image.RBX, image.RDX, image.RAX, image.RCX, image.RSP, image.RIP}

// raisedAgain judges a handler of a fault that sent the signal again, with its default action, and
// returned. The signal was blocked while the handler ran, so the process dies at the instruction
// that faulted, of a signal that it sent to itself. The frame that the kernel left below the stack
// pointer shows the fault. If that frame is on a stack for handlers, the fault is inferred from the
// addresses that the instruction accesses.
func (h *handlerFrames) raisedAgain(f *evidence.Failure) (inferred bool) {
	number := unix.Signal(f.Signal.Number)
	if !slices.Contains([]unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL}, number) || h.stack.cut > 0 ||
		!sentByProcess(f.Signal.Code) || h.stack.pid == 0 || f.Signal.SenderPID != h.stack.pid {
		return false
	}
	if sig, found := h.returned(number); found {
		f.Signal = sig
		return false
	}
	sig := newProcessor(h.stack.process, h.stack.registers()).refused(number)
	if sig == nil {
		return false
	}
	f.Signal = sig
	return true
}

// returned looks for the frame of a handler that has returned to the thread's pc.
func (h *handlerFrames) returned(number unix.Signal) (*evidence.Signal, bool) {
	const align = 16
	sp := h.stack.registers().SP()
	low := (uint64(sp) - frameBelow) &^ (align - 1)
	if uint64(sp) < frameBelow {
		return nil, false
	}
	area := make([]byte, uint64(sp)-low)
	// The search continues past unmapped memory far below.
	n := len(area)
	for at := 0; at < n; at += pageSize {
		page := area[at:min(at+pageSize, n)]
		if _, err := h.stack.ReadMemory(evidence.Addr(low+uint64(at)), page); err != nil {
			clear(page)
		}
	}
	for at := len(area) - frameBytes; at >= 0; at-- {
		if (low+uint64(at))%align != 0 || !interruptedAt(h.stack.registers(), area[at:]) {
			continue
		}
		frame := unwind.Frame{Kind: evidence.SignalFrame}
		frame.Registers.Set(image.RSP, low+uint64(at))
		stack := *h.stack
		stack.frames = append([]unwind.Frame{frame}, stack.frames...)
		inner := handlerFrames{stack: &stack, recorded: h.recorded}
		if sig, ok := inner.interruption(0); ok && sig.Number == int(number) {
			return sig, true
		}
	}
	return nil, false
}

// interruptedAt reports whether a ucontext has all general registers as they are.
func interruptedAt(regs *image.Registers, uc []byte) bool {
	for i, r := range frameOrder {
		have, known := regs.Get(r)
		if known && binary.LittleEndian.Uint64(uc[frameRegisters+8*i:]) != have {
			return false
		}
	}
	return true
}

// refused is the signal that the instruction under judgement must raise, whatever happened before;
// nil if it need not raise one.
func (c *processor) refused(number unix.Signal) *evidence.Signal {
	sig := evidence.Signal{Number: int(number), Code: segvMapErr, HasAddr: true, Addr: c.pc()}
	switch number {
	case unix.SIGSEGV:
		if m := c.MappingAt(c.pc()); m == nil {
			return completeSignal(sig)
		}
		if c.inst == nil {
			return nil
		}
		for i := range c.inst.Operands {
			op := &c.inst.Operands[i]
			addr, known := c.effective(&op.Memory)
			if !op.IsMemory || op.Access == "" || op.Repeated || !known {
				continue
			}
			switch m := c.MappingAt(addr); {
			case !addr.Canonical():
				sig.Code, sig.HasAddr, sig.Addr = siginfo.Kernel, false, 0
			case m == nil:
				sig.Addr = addr
			default:
				continue
			}
			return completeSignal(sig)
		}
	case unix.SIGFPE:
		if c.divides() {
			sig.Code = fpeIntDiv
			return completeSignal(sig)
		}
	case unix.SIGILL:
		if c.inst != nil && c.inst.Op == "ud2" {
			sig.Code = illOperand
			return completeSignal(sig)
		}
	}
	return nil
}
