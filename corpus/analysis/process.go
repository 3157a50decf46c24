package analysis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a command with budgets, in its own process group.
type process struct {
	args, environ []string
	// dir is a directory for its output.
	dir    string
	time   time.Duration
	memory int64 // bytes, of it and its descendants
	// group enforces the memory budget; nil: watch polls.
	group *controlGroup
	// confine restricts the command before it starts; nil: it does not.
	confine func(*exec.Cmd) (release func(), err error)
}

// ending describes how it ended.
type ending struct {
	status int
	how    string // "exit status 3", "signal: killed"
	stderr string // the end of it
	// tooLong and tooLarge say that a budget ended it.
	tooLong, tooLarge bool
	// starved says that the kernel killed one of its processes for lack of memory outside of
	// its budget.
	starved bool
	cpu     time.Duration
	memory  int64 // the largest seen, in bytes
}

const (
	// watchEvery is how often its memory is polled without a control group. A limit of the
	// address space would stop a Go program, and the replayed one, since both reserve more than
	// they use.
	watchEvery = 100 * time.Millisecond
	// mostStderr is how many bytes of its standard error are kept.
	mostStderr = 64 << 10
)

// runToEnd runs it to its end, and leaves no process of it. The error is that of the context,
// or says that it cannot be started.
func (p *process) runToEnd(ctx context.Context) (*ending, error) {
	stderr, err := os.Create(filepath.Join(p.dir, "stderr"))
	if err != nil {
		return nil, fmt.Errorf("analysis: %w", err)
	}
	defer stderr.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.environ, p.dir, stderr, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(p.group.fd.Fd())
	}
	if p.confine != nil {
		release, err := p.confine(cmd)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, &confineError{err}
		}
		defer release()
	}
	// The parent-death signal is sent when the thread that starts the process ends. So that
	// thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return nil, &startError{err}
	}
	family := newFamily(cmd.Process.Pid)
	end := &ending{}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(ctx, family, end, stop)
	}()
	// Until it is waited for, its id and that of its group are not reused.
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	close(stop)
	<-watched
	family.kill()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("analysis: %w", err)
	}
	end.status, end.how = cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	end.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	end.stderr = tail(stderr)
	if p.group == nil {
		return end, nil
	}
	budget, outside, err := p.group.killed()
	if err != nil {
		return nil, fmt.Errorf("analysis: %w", err)
	}
	if budget && !end.tooLong {
		end.tooLarge, end.memory = true, max(end.memory, p.memory)
	}
	end.starved = outside && !end.tooLong
	return end, nil
}

// confineError says that a process could not be confined.
type confineError struct{ err error }

func (e *confineError) Error() string { return "analysis: " + e.err.Error() }
func (e *confineError) Unwrap() error { return e.err }

// startError says that a process could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return "analysis: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// watch kills the process when a budget is spent or the night is over.
func (p *process) watch(ctx context.Context, f *family, end *ending, stop chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	limit := time.NewTimer(p.time)
	defer limit.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			f.kill()
		case <-limit.C:
			end.tooLong = true
			f.kill()
		case <-tick.C:
			size := f.measureMemory()
			end.memory = max(end.memory, size)
			if p.group == nil && size > p.memory && !end.tooLong {
				end.tooLarge = true
				f.kill()
			}
			continue
		}
		<-stop
		return
	}
}

func tail(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	at := max(0, info.Size()-mostStderr)
	text, err := io.ReadAll(io.NewSectionReader(f, at, info.Size()-at))
	if err != nil {
		return ""
	}
	return string(text)
}
