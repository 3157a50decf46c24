package record

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A thread that is killed in a fork does not report it, and its child would
// wait for that report for good: such a child goes on, and is not recorded, as
// nobody knows at which event it came to be.

// adopt lets a process go on whose maker is gone.
func (t *tracer) adopt(x *tracee) error {
	parent := parentOf(x.tid)
	if parent == 0 || parent == x.parent && (t.processes[parent] != nil || t.isOwn(parent)) {
		return nil
	}
	t.newProcess(x.tid, &ancestor{})
	err := t.proceed(x, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // killed, too
	}
	return err
}

// adoptAll is for a process that has ended, or whose other threads have: none
// of them is to report anything.
func (t *tracer) adoptAll(pid int) error {
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

// isOwn: a child of the main process that it made a child of its parent's
// (CLONE_PARENT) is one of the tracer.
func (t *tracer) isOwn(parent int) bool {
	return parent == unix.Getpid() && t.processes[t.main.pid] != nil
}

// parentOf is the parent of a process; 0 for another thread than its first,
// which ends with the process, and for one that is gone.
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
