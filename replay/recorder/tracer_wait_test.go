package recorder

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKilledWhileItsCoreIsMade: a process whose first thread has ended, and that is killed
// while its core is made, is no error: its own end, or that of another process, is reported
// next. Any other error of the core is returned.
func TestKilledWhileItsCoreIsMade(t *testing.T) {
	dead, err := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(dead, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	for _, core := range []error{fmt.Errorf("the registers: %w", unix.ESRCH), unix.EIO} {
		t.Run(core.Error(), func(t *testing.T) {
			// The tracer waits for the children of its own thread.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer out.Close()
			// It lives until the core was requested: then there is an end to wait for.
			other, err := syscall.ForkExec("/bin/cat", []string{"cat"}, &syscall.ProcAttr{Files: []uintptr{in.Fd(), 1, 2}})
			if err != nil {
				t.Fatal(err)
			}
			p := &process{pid: dead, threads: map[int]*tracee{}}
			p.threads[dead] = &tracee{tid: dead, process: p}
			asked := 0
			p.ending = &ending{then: func() error { asked++; out.Close(); return core }}
			w := &tracer{tracees: tracees{processes: map[int]*process{dead: p}}}
			stop, err := w.wait()
			out.Close() // whatever the result, the other process ends
			if asked != 1 {
				t.Errorf("the core was asked for %d times", asked)
			}
			if errors.Is(core, unix.ESRCH) {
				if err != nil || stop.TID != other {
					t.Errorf("got the end of %d, %v; want that of %d", stop.TID, err, other)
				}
				return
			}
			if !errors.Is(err, core) {
				t.Errorf("got %v, want %v", err, core)
			}
			if _, err := syscall.Wait4(other, nil, 0, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
