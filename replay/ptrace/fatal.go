package ptrace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Fatal reports whether a thread's process neither handles nor ignores the signal. A fault whose
// signal is blocked or ignored has the default action by the time of its stop.
func Fatal(tid int, s syscall.Signal) bool {
	caught, ignored, err := dispositions(tid)
	bit := uint64(1) << (s - 1)
	return err == nil && (caught|ignored)&bit == 0
}

// dispositions returns the sets of signals that a thread's process handles and ignores; bit 0
// is signal 1.
func dispositions(tid int) (caught, ignored uint64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		set := &caught
		switch name {
		case "SigIgn":
			set = &ignored
		case "SigCgt":
		default:
			continue
		}
		if *set, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64); err != nil {
			return 0, 0, fmt.Errorf("ptrace: %s of thread %d: %w", name, tid, err)
		}
	}
	return caught, ignored, nil
}
