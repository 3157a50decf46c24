package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// abortWhenHung sends SIGABRT to a process once all its threads wait for a
// futex, seen twice in a row with the same system call counts, and gives up
// when done is closed or after limit.
func abortWhenHung(pid int, limit time.Duration, done <-chan struct{}) error {
	deadline := time.Now().Add(limit)
	before := ""
	for time.Now().Before(deadline) {
		select {
		case <-done:
			return fmt.Errorf("process %d ended before it hung", pid)
		case <-time.After(20 * time.Millisecond):
		}
		now, hung := threadWaits(pid)
		if hung && now == before {
			return unix.Kill(pid, unix.SIGABRT)
		}
		before = now
	}
	unix.Kill(pid, unix.SIGKILL)
	return fmt.Errorf("process %d did not hang within %v", pid, limit)
}

// threadWaits returns what the threads of a process wait for, as the kernel
// prints it, and whether all of them wait for a futex. The text holds the
// futex's address and the stack pointer, and the count of voluntary context
// switches, so that equal texts mean that no thread moved in between.
func threadWaits(pid int) (string, bool) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	var all strings.Builder
	for _, task := range tasks {
		call, err := os.ReadFile(filepath.Join(task, "syscall"))
		if err != nil || !strings.HasPrefix(string(call), fmt.Sprintf("%d ", unix.SYS_FUTEX)) {
			return "", false
		}
		all.Write(call)
		status, _ := os.ReadFile(filepath.Join(task, "status"))
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "voluntary_ctxt_switches") {
				all.WriteString(line)
			}
		}
	}
	return all.String(), len(tasks) > 0
}
