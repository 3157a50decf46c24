package ptrace

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls f on a kernel thread of its own and returns what f returns.
// The thread ends with f, and the kernel lets go of whatever it still traces
// (kills it, with PTRACE_O_EXITKILL).
//
// The process's first thread would not end, and Wait would take the children that
// os/exec started on a thread: another goroutine takes over then, which cannot be
// given that thread while this one holds it.
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

// hasChildren tells whether this thread has children, without waiting for any.
func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|noThread, nil)
	return !errors.Is(err, unix.ECHILD)
}
