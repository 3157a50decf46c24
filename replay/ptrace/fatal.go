package ptrace

import (
	"syscall"

	"diagnose/internal/signalsets"
)

// Fatal reports whether a thread's process neither handles nor ignores the signal. A fault whose
// signal is blocked or ignored has the default action by the time of its stop.
func Fatal(tid int, s syscall.Signal) bool {
	sets, err := signalsets.Read(tid)
	return err == nil && !(sets.Caught | sets.Ignored).Has(s)
}
