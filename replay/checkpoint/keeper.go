package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// keeper traces the process that waits, on a kernel thread of its own: the thread that has made the copy ends with its replay. If
// the tool ends, so does the process.
type keeper struct {
	pid   int
	calls chan func()
	ended chan struct{}
}

// keep takes over a process that was left to itself (leave).
func keep(pid int) (*keeper, error) {
	return keepStarted(func() (int, error) {
		err := seize(pid)
		if err != nil {
			unix.Kill(pid, unix.SIGKILL)
		}
		return pid, err
	})
}

// keepStarted keeps the process that start returns, stopped, with one thread, and traced by the thread that calls it.
func keepStarted(start func() (pid int, err error)) (*keeper, error) {
	k := &keeper{calls: make(chan func()), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(k.ended)
		ptrace.OnThread(func() error {
			pid, err := start()
			k.pid = pid
			started <- err
			if err != nil {
				return nil
			}
			for call := range k.calls {
				call()
			}
			return errors.Join(reap(pid), kill(pid))
		})
	}()
	if err := <-started; err != nil {
		<-k.ended
		return nil, err
	}
	return k, nil
}

// do calls f on the thread that traces the process.
func (k *keeper) do(f func() error) (err error) {
	done := make(chan struct{})
	k.calls <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

// close ends the process.
func (k *keeper) close() {
	close(k.calls)
	<-k.ended
}

// fork makes a child of the process, which is left to itself.
func (k *keeper) fork() (pid int, err error) {
	err = k.do(func() error {
		if err := reap(k.pid); err != nil {
			return err
		}
		caller, err := ptrace.NewCaller(k.pid, page)
		if err != nil {
			return err
		}
		if pid, err = fork(caller); err != nil {
			return err
		}
		return leave(pid)
	})
	return pid, err
}

// fork makes a child of a process with a stopped thread that reports no forks. This thread of the tool traces the child, which is
// stopped and has executed nothing.
func fork(caller *ptrace.Caller) (pid int, err error) {
	result, err := caller.Call(unix.SYS_CLONE, unix.CLONE_PTRACE, 0, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	pid = int(result)
	stop, err := ptrace.WaitFor(pid)
	if err == nil && stop.Kind != ptrace.Interrupted {
		err = fmt.Errorf("checkpoint: a fork came to %v", stop)
	}
	if err != nil {
		return 0, errors.Join(err, kill(pid))
	}
	return pid, nil
}

// reap removes the children of a process that have ended: a parent that ends leaves them to the first process of the system or container,
// which may never do it.
func reap(pid int) error {
	caller, err := ptrace.NewCaller(pid, page)
	if err != nil {
		return err
	}
	for {
		const any = ^uint64(0)
		switch reaped, err := caller.Call(unix.SYS_WAIT4, any, 0, unix.WNOHANG|unix.WALL, 0); {
		case errors.Is(err, unix.ECHILD), err == nil && reaped == 0:
			return nil
		case err != nil:
			return err
		}
	}
}

// leave detaches from a process with one thread, which waits then (page) until another thread of the tool seizes it.
func leave(pid int) error {
	caller, err := ptrace.NewCaller(pid, page)
	if err == nil {
		// Where Yama restricts ptrace(2) to ancestors: the process's own may end. Elsewhere there is no such call.
		_, callErr := caller.Call(unix.SYS_PRCTL, unix.PR_SET_PTRACER, uint64(os.Getpid()))
		if !errors.Is(callErr, unix.EINVAL) {
			err = callErr
		}
	}
	if err == nil {
		err = caller.Leave(page + waitAt)
	}
	if err != nil {
		return errors.Join(err, kill(pid))
	}
	return nil
}

// seize stops a process that was left.
func seize(pid int) error {
	if err := ptrace.Seize(pid, ptrace.ExitKill); err != nil {
		return err
	}
	if err := ptrace.Interrupt(pid); err != nil {
		return err
	}
	stop, err := ptrace.WaitFor(pid)
	if err == nil && stop.Kind != ptrace.Interrupted {
		err = fmt.Errorf("checkpoint: a waiting process came to %v", stop)
	}
	return err
}

// kill ends a process with one thread that this thread of the tool traces.
func kill(pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return fmt.Errorf("checkpoint: kill: %w", err)
	}
	for {
		stop, err := ptrace.WaitFor(pid)
		if err != nil || stop.Kind == ptrace.Ended {
			return err
		}
	}
}
