package failure

import (
	"diagnose/evidence"
	"diagnose/internal/siginfo"

	"diagnose/internal/wording"
)

// Values of si_code (include/uapi/asm-generic/siginfo.h).
const (
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

// completeSignal adds the names that a source of signals left out.
func completeSignal(sig evidence.Signal) *evidence.Signal {
	if sig.Name == "" {
		sig.Name = wording.Signal(sig.Number)
	}
	if sig.CodeName == "" {
		sig.CodeName = siginfo.CodeName(sig.Number, sig.Code)
	}
	return &sig
}

// sentByProcess reports whether si_code says that a process, not the kernel,
// made the signal (sigaction(2): SI_USER and the negative codes).
func sentByProcess(code int) bool { return code <= 0 }
