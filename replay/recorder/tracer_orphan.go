package recorder

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A thread that is killed in a fork does not report it, and its child would wait for that
// report for ever. Such a child continues, and is not recorded, since the event that created it
// is not known.

// adopt continues a process whose maker has ended.
func (t *tracees) adopt(x *tracee) error {
	parent := parentOf(x.tid)
	if parent == 0 || parent == x.parent && (t.processes[parent] != nil || t.isOwn(parent)) {
		return nil
	}
	t.newProcess(x.tid, &ancestor{})
	err := x.proceed(0)
	if errors.Is(err, unix.ESRCH) {
		return nil // also killed
	}
	return err
}

// adoptAll handles a process that has ended, or whose other threads have: none of them will
// report anything.
func (t *tracees) adoptAll(pid int) error {
	for _, x := range t.threads {
		if x.process != nil {
			continue
		}
		if x.parent == pid {
			x.parent = -1
		}
		if err := t.adopt(x); err != nil {
			return err
		}
	}
	return nil
}

// isOwn: if the main process creates a child of its parent (CLONE_PARENT), that is a child of
// the tracer.
func (t *tracees) isOwn(parent int) bool {
	return parent == unix.Getpid() && t.processes[t.main.pid] != nil
}

// parentOf returns the parent of a process; 0 for a thread other than its first, which ends
// with the process, and for one that has ended.
func parentOf(tid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0
	}
	parent := 0
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case name == "Tgid" && (err != nil || n != tid):
			return 0
		case name == "PPid" && err == nil:
			parent = n
		}
	}
	return parent
}
