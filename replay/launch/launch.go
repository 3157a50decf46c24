package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// Launch starts a program so that a second start has the same mappings, the same stack and the
// same bytes where the kernel would put random ones. Address space randomisation is off, the
// random bytes of AT_RANDOM are given, and the vDSO is hidden, so that reads of clocks are
// system calls.
type Launch struct {
	Path    string // passed to execve unchanged: AT_EXECFN points to it
	Args    []string
	Environ []string
	// Directory to start in; empty: this process's.
	Directory string
	Random    [16]byte
	// Files become descriptors 0, 1, 2 and so on. ^0 is a closed descriptor.
	Files []uintptr
	// Options are those of ptrace.
	Options int
	// StackLimit, unless 0, is the soft RLIMIT_STACK.
	StackLimit uint64
	// Umask is set if it is not nil.
	Umask *int
}

const NoRandomize = 0x0040000 // ADDR_NO_RANDOMIZE of personality(2)

// UnsupportedError says what this machine or this account does not allow.
type UnsupportedError struct {
	What string
	Err  error
}

func (e *UnsupportedError) Error() string {
	switch {
	case e.Err == nil:
		return "record: " + e.What
	case e.What == "": // the tracer's text is complete
		return e.Err.Error()
	}
	return fmt.Sprintf("record: %s: %v", e.What, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// Start starts the program and returns its process, seized and stopped before its first
// instruction. Call it in ptrace.OnThread.
//
// The kernel stops at exec only for PTRACE_TRACEME, and such a tracee cannot be left in a stop
// of job control. So Start detaches from the process with a SIGSTOP, which stops it before it
// executes anything, and then seizes it.
func (l *Launch) Start() (started int, err error) {
	if err := ownProc(); err != nil {
		return 0, err
	}
	pid, err := l.fork()
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil { // started is 0 then, which kill(2) takes for the process group
			Discard(pid)
		}
	}()
	if err := expect(pid, ptrace.SignalStop, unix.SIGTRAP, ptrace.WaitFor); err != nil {
		return 0, err
	}
	if err := Normalise(pid, l.Random); err != nil {
		return 0, err
	}
	if err := l.seize(pid); err != nil {
		return 0, err
	}
	return pid, nil
}

// discard kills a traced process and reaps it.
func Discard(pid int) {
	unix.Kill(pid, unix.SIGKILL)
	ptrace.WaitFor(pid) // a second wait fails: the process is gone
}

// ownProc: in a PID namespace without its own /proc, /proc/PID is another process, whose memory
// would be overwritten.
func ownProc() error {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		err = fmt.Errorf("this process is %d, and /proc/self is %s", os.Getpid(), self)
	}
	if err != nil {
		return &UnsupportedError{"/proc is not of this PID namespace", err}
	}
	return nil
}

// fork starts the program up to its exec. It sets the attributes of this kernel thread that a
// child inherits, and restores them.
func (l *Launch) fork() (int, error) {
	before, err := personality(0xffffffff)
	if err != nil {
		return 0, err
	}
	if _, err := personality(before | NoRandomize); err != nil {
		return 0, &UnsupportedError{"address space randomisation cannot be switched off", err}
	}
	defer personality(before)
	restore, err := l.setLimits()
	if err != nil {
		return 0, err
	}
	defer restore()
	attributes := syscall.SysProcAttr{Ptrace: true}
	if l.Options&ptrace.ExitKill != 0 { // takes effect at seize: a tracer that ends before that would leave it stopped
		attributes.Pdeathsig = unix.SIGKILL
	}
	pid, err := syscall.ForkExec(l.Path, l.Args, &syscall.ProcAttr{Dir: l.Directory, Env: l.Environ, Files: l.Files, Sys: &attributes})
	switch {
	case errors.Is(err, unix.EPERM) && tracingForbidden():
		return 0, &UnsupportedError{"processes may not be traced here (ptrace, see yama's ptrace_scope, or the container's rules)", err}
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return 0, fmt.Errorf("%s: fork: %w", l.Path, err)
	case err != nil:
		return 0, &StartError{fmt.Errorf("%s cannot be run: %w", l.Path, err)}
	}
	return pid, nil
}

// setLimits: both belong to the whole process, so they are restored after the program was
// started.
func (l *Launch) setLimits() (restore func(), err error) {
	var undo []func()
	restore = func() {
		for _, f := range undo {
			f()
		}
	}
	if l.Umask != nil {
		old := unix.Umask(*l.Umask)
		undo = append(undo, func() { unix.Umask(old) })
	}
	if l.StackLimit != 0 {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil {
			restore()
			return nil, fmt.Errorf("getrlimit RLIMIT_STACK: %w", err)
		}
		changed := unix.Rlimit{Cur: l.StackLimit, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &changed); err != nil {
			restore()
			return nil, &UnsupportedError{fmt.Sprintf("a stack limit of %d bytes", l.StackLimit), err}
		}
		undo = append(undo, func() { unix.Setrlimit(unix.RLIMIT_STACK, &limit) })
	}
	return restore, nil
}

// personality is a property of a kernel thread, inherited over fork and exec.
func personality(value uint32) (uint32, error) {
	old, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, uintptr(value), 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("personality: %w", errno)
	}
	return uint32(old), nil
}

// tracingForbidden tells a refused ptrace from a program that may not be run.
func tracingForbidden() bool {
	err := ptrace.OnThread(func() error {
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"diagnose", "--version"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
		if err == nil {
			Discard(pid)
		}
		return err
	})
	return errors.Is(err, unix.EPERM)
}

func (l *Launch) seize(pid int) error {
	if err := ptrace.Detach(pid, unix.SIGSTOP); err != nil {
		return err
	}
	if err := expect(pid, ptrace.JobStop, unix.SIGSTOP, ptrace.WaitJob); err != nil {
		return err
	}
	if err := ptrace.Seize(pid, l.Options); err != nil {
		return &UnsupportedError{"the program cannot be traced", err}
	}
	if err := expect(pid, ptrace.GroupStop, unix.SIGSTOP, ptrace.WaitFor); err != nil {
		return err
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		return fmt.Errorf("SIGCONT: %w", err)
	}
	if err := ptrace.Cont(pid, 0); err != nil {
		return err
	}
	// First the end of the stop is reported, then SIGCONT itself, unless it is blocked. The
	// program does not get the SIGCONT: natively there is none.
	if err := expect(pid, ptrace.Interrupted, unix.SIGTRAP, ptrace.WaitFor); err != nil {
		return err
	}
	mask, err := ptrace.GetSigmask(pid)
	if err != nil || mask&(1<<(unix.SIGCONT-1)) != 0 {
		return err
	}
	if err := ptrace.Cont(pid, 0); err != nil {
		return err
	}
	return expect(pid, ptrace.SignalStop, unix.SIGCONT, ptrace.WaitFor)
}

func expect(pid int, kind ptrace.Kind, signal syscall.Signal, wait func(int) (ptrace.Stop, error)) error {
	stop, err := wait(pid)
	if err != nil {
		return err
	}
	if stop.Kind != kind || stop.Signal != signal {
		return fmt.Errorf("record: process %d was stopped by %v at its start", pid, stop)
	}
	return nil
}

// StartError says that the program could not be run.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }
