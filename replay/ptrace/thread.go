package ptrace

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls f on a separate kernel thread and returns the result of f. The thread ends with
// f, and the kernel detaches from the tracees that are left (kills them, with PTRACE_O_EXITKILL).
//
// Some threads are not suitable: the process's first thread would not end, and on a thread on
// which os/exec started children Wait would take those. Then another goroutine takes over, on
// another thread, because this one still holds its thread.
func OnThread(f func() error) error {
	result := make(chan error, 1)
	started := make(chan struct{})
	var serve func()
	serve = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() || hasChildren() {
			go serve()
			<-started
			runtime.UnlockOSThread()
			return
		}
		close(started)
		result <- f()
	}
	go serve()
	return <-result
}

// hasChildren reports whether this thread has children, without waiting for any.
func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|noThread, nil)
	return !errors.Is(err, unix.ECHILD)
}
