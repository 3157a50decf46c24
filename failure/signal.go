package failure

import (
	"encoding/binary"
	"strconv"

	"diagnose/evidence"

	"golang.org/x/sys/unix"
)

// Values of si_code (include/uapi/asm-generic/siginfo.h).
const (
	siKernel   = 0x80
	siTkill    = -6
	segvMapErr = 1
	segvAccErr = 2
	segvPkuErr = 4
	busAdrAln  = 1
	busAdrErr  = 2
	busMceErrA = 4
	busMceErrB = 5
	fpeIntDiv  = 1
	sysSeccomp = 1
)

var generalCodes = map[int]string{
	0: "SI_USER", siKernel: "SI_KERNEL", -1: "SI_QUEUE", -2: "SI_TIMER",
	-3: "SI_MESGQ", -4: "SI_ASYNCIO", -5: "SI_SIGIO", siTkill: "SI_TKILL",
}

var signalCodes = map[unix.Signal][]string{
	unix.SIGILL: {1: "ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC",
		"ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"},
	unix.SIGFPE: {1: "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND",
		"FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"},
	unix.SIGSEGV: {1: "SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"},
	unix.SIGBUS:  {1: "BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"},
	unix.SIGTRAP: {1: "TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT"},
	unix.SIGSYS:  {1: "SYS_SECCOMP", "SYS_USER_DISPATCH"},
}

// completeSignal adds the names that a source of signals left out.
func completeSignal(sig evidence.Signal) *evidence.Signal {
	if sig.Name == "" {
		sig.Name = signalName(sig.Number)
	}
	if sig.CodeName == "" {
		sig.CodeName = codeName(sig.Number, sig.Code)
	}
	return &sig
}

func signalName(number int) string {
	if name := unix.SignalName(unix.Signal(number)); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(number)
}

func codeName(number, code int) string {
	if name, ok := generalCodes[code]; ok {
		return name
	}
	names := signalCodes[unix.Signal(number)]
	if code > 0 && code < len(names) {
		return names[code]
	}
	return ""
}

// sentByProcess reports whether si_code says that a process, not the kernel,
// made the signal (sigaction(2): SI_USER and the negative codes).
func sentByProcess(code int) bool { return code <= 0 }

// Offsets in the frame that the kernel pushes for a signal handler, from the
// stack pointer at the trampoline, where pretcode is already popped
// (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h).
const (
	frameTrapNumber = 40 + 160
	frameInfo       = 304
	infoAddr        = frameInfo + 16
	frameBytes      = frameInfo + 48
)

// handled looks for a signal handler on the stack that turned a fault into
// the signal that ended the process, and moves the judgement to the fault.
func (s *scene) handled(f *evidence.Failure) {
	if !sentByProcess(f.Signal.Code) {
		return
	}
	for i := range s.frames {
		if s.frames[i].Kind != evidence.SignalFrame || i+1 >= len(s.frames) {
			continue
		}
		inner, ok := s.signalAt(s.frames[i].Registers.SP())
		if !ok {
			continue
		}
		if inner.Number != f.Signal.Number {
			f.Message = "the handler of " + inner.Name + " raised " + f.Signal.Name
		}
		f.Signal, s.frames, s.cut = inner, s.frames[i+1:], i+1
		return
	}
}

// signalAt reads the siginfo that a handler was given. ok is false for a
// signal that is no fault of the interrupted instruction.
func (s *scene) signalAt(sp evidence.Addr) (*evidence.Signal, bool) {
	var b [frameBytes]byte
	if _, err := s.ReadMemory(sp, b[:]); err != nil {
		return nil, false
	}
	word := func(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }
	sig := evidence.Signal{Number: word(frameInfo), Code: word(frameInfo + 8)}
	switch unix.Signal(sig.Number) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS:
	default:
		return nil, false
	}
	if sentByProcess(sig.Code) || word(frameTrapNumber) < 0 || word(frameTrapNumber) > 32 {
		return nil, false
	}
	sig.Addr = evidence.Addr(binary.LittleEndian.Uint64(b[infoAddr:]))
	sig.HasAddr = sig.Code != siKernel
	return completeSignal(sig), true
}
