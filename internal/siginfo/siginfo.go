// Package siginfo reads the siginfo_t by which the kernel describes a signal.
package siginfo

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

const (
	// Size is that of a siginfo_t in bytes.
	Size = 128
	// Kernel is SI_KERNEL of asm-generic/siginfo.h: the code of int3, and of faults that
	// have no address.
	Kernel = 0x80
	// Timer is SI_TIMER: a signal of a timer of timer_create(2).
	Timer = -2
)

// Parse reads a siginfo_t of x86-64 (asm-generic/siginfo.h). ok is false if b is too
// short.
func Parse(b []byte) (s evidence.Signal, ok bool) {
	if len(b) < 32 {
		return evidence.Signal{}, false
	}
	le := binary.LittleEndian
	s = Signal(int(int32(le.Uint32(b))))
	s.Code = int(int32(le.Uint32(b[8:])))
	s.CodeName = CodeName(s.Number, s.Code)
	switch {
	case s.Code <= 0 && s.Code != Timer:
		s.SenderPID, s.SenderUID = int(int32(le.Uint32(b[16:]))), int(le.Uint32(b[20:]))
	case s.Code != Kernel && hasAddress(unix.Signal(s.Number)):
		s.Addr, s.HasAddr = evidence.Addr(le.Uint64(b[16:])), true
	}
	return s, true
}

// Signal is a signal of which only the number is known.
func Signal(number int) evidence.Signal {
	return evidence.Signal{Number: number, Name: wording.Signal(number)}
}

func hasAddress(s unix.Signal) bool {
	switch s {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP:
		return true
	}
	return false
}

var commonCodes = map[int]string{
	0: "SI_USER", Kernel: "SI_KERNEL", -1: "SI_QUEUE", Timer: "SI_TIMER", -3: "SI_MESGQ",
	-4: "SI_ASYNCIO", -5: "SI_SIGIO", -6: "SI_TKILL", -7: "SI_DETHREAD", -60: "SI_ASYNCNL",
}

// signalCodes holds the si_code values of one signal, from 1.
var signalCodes = map[unix.Signal][]string{
	unix.SIGSEGV: {"SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI", "SEGV_ADIDERR",
		"SEGV_ADIPERR", "SEGV_MTEAERR", "SEGV_MTESERR", "SEGV_CPERR"},
	unix.SIGBUS: {"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"},
	unix.SIGILL: {"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG",
		"ILL_COPROC", "ILL_BADSTK", "ILL_BADIADDR"},
	unix.SIGFPE: {"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES",
		"FPE_FLTINV", "FPE_FLTSUB"},
	unix.SIGTRAP: {"TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"},
	unix.SIGSYS:  {"SYS_SECCOMP", "SYS_USER_DISPATCH"},
	unix.SIGCHLD: {"CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"},
}

// CodeName returns the symbol of a signal's si_code
// (asm-generic/siginfo.h), such as "SEGV_MAPERR"; "" if it has none.
func CodeName(signal, code int) string {
	if name, ok := commonCodes[code]; ok {
		return name
	}
	if names := signalCodes[unix.Signal(signal)]; code >= 1 && code <= len(names) {
		return names[code-1]
	}
	return ""
}
