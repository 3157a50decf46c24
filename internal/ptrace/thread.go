package ptrace

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls f on a kernel thread of its own and returns what f returns.
// The thread ends with f, and the kernel lets go of whatever it still traces
// (kills it, with PTRACE_O_EXITKILL).
//
// The process's first thread would not end: another goroutine takes over
// then, which cannot be given that thread while this one holds it.
func OnThread(f func() error) error {
	result := make(chan error, 1)
	started := make(chan struct{})
	var serve func()
	serve = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
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
