package replay

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// describeThreads describes what the kernel knows of a replay without progress: the state of the
// process's threads, and of the thread that traces them, which may itself be stuck.
func (w *watchdog) describeThreads(s *watchState) string {
	var b strings.Builder
	pid := w.process.Load().pid
	now := time.Now()
	fmt.Fprintf(&b, "process %d, looked at %d times, the last event %v ago, the last sign of life %v ago",
		pid, s.looks, now.Sub(s.event).Round(time.Millisecond), now.Sub(s.moved).Round(time.Millisecond))
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		fmt.Fprintf(&b, "; %v", err)
	}
	const most = 16
	for _, task := range tasks[:min(len(tasks), most)] {
		fmt.Fprintf(&b, "; thread %s %s", task.Name(), kernelState(pid, task.Name()))
	}
	fmt.Fprintf(&b, "; the tracing thread %d %s", w.tracer, kernelState(os.Getpid(), strconv.Itoa(w.tracer)))
	return b.String()
}

// kernelState describes a thread by what the kernel reports of it: proc_pid_stat(5),
// proc_pid_wchan(5), proc_pid_syscall(5) and proc_pid_stack(5).
func kernelState(pid int, tid string) string {
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
