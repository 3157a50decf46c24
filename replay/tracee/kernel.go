package tracee

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// KernelState describes a thread by what the kernel reports of it: proc_pid_stat(5),
// proc_pid_wchan(5), proc_pid_syscall(5) and proc_pid_stack(5).
func KernelState(pid int, tid string) string {
	read := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/%s", pid, tid, name))
		if err != nil {
			return ""
		}
		return string(bytes.TrimSpace(text))
	}
	state := "?"
	if _, rest, found := strings.Cut(read("status"), "\nState:"); found {
		state, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	}
	text := "is " + state
	if at := read("wchan"); at != "" && at != "0" {
		text += " in " + at
	}
	if call := read("syscall"); call != "" {
		text += ", system call " + call
	}
	if stack := read("stack"); stack != "" {
		text += ", " + strings.ReplaceAll(strings.ReplaceAll(stack, "[<0>] ", ""), "\n", " ")
	}
	return text
}
