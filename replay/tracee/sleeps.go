package tracee

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Sleeps reports whether each thread of a process except butFor (0: no exception) waits for another
// one or has ended. A thread that could run has no processor. A thread in a ptrace stop waits for
// the tracing thread, which may be late.
func Sleeps(pid, butFor int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return true
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		if err != nil || task.Name() == strconv.Itoa(butFor) {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if len(rest) > 0 && bytes.IndexByte([]byte("SIZX"), rest[0]) < 0 {
			return false
		}
	}
	return true
}
