package failure

import (
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
	illOperand = 2
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
