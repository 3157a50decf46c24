package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/internal/wording"
)

// supervise runs a program and waits for it. The error is an *endedError unless the program could
// not be started.
//
// The default is a parent that waits, not exec: after a crash the user needs the path of the core,
// which only a surviving process can look for.
func supervise(target *agent.Target, args, environ []string, ignored []os.Signal) error {
	path := target.Path
	cmd := &exec.Cmd{Path: path, Args: args, Env: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, forwarded(ignored)...)
	defer signal.Stop(signals)
	death := agent.Death{Started: time.Now()}
	death.Directory, _ = os.Getwd() // "" would mean the directory of a later reader
	if err := cmd.Start(); err != nil {
		return &driver.InputError{Err: fmt.Errorf("%s cannot be run: %w", path, errors.Unwrap(err))}
	}
	ended := make(chan struct{})
	go forward(cmd.Process, signals, ended)
	err := cmd.Wait()
	close(ended)
	if cmd.ProcessState == nil {
		return fmt.Errorf("wait for %s: %w", path, err)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return fmt.Errorf("wait for %s: no status", path)
	}
	if status.Signaled() {
		death.PID, death.Status = cmd.ProcessState.Pid(), status
		explain(death, path)
	}
	sayPanic(target.File, status)
	return &endedError{status}
}

// forwarded returns the signals that people send to programs. The signals by which a terminal stops
// its processes are not among them: the program receives them by itself, and they stop this process
// as well, as they should. An ignored signal stays ignored in both processes: a signal that is
// caught would be reset at exec.
func forwarded(ignored []os.Signal) []os.Signal {
	list := []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH}
	for n := syscall.Signal(35); n <= 64; n++ { // the real-time signals, but for those of the C library
		list = append(list, n)
	}
	return slices.DeleteFunc(list, func(s os.Signal) bool { return slices.Contains(ignored, s) })
}

func forward(process *os.Process, signals <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if !fromTerminal(s) {
				process.Signal(s) // it fails if the program ended just now
			}
		case <-ended:
			return
		}
	}
}

// fromTerminal reports whether the terminal's keys or its window may have sent the signal. They
// send it to all processes of the foreground, so the program has received it already.
func fromTerminal(s os.Signal) bool {
	if !slices.Contains([]os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH}, s) {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// endedError says how the program ended. It is no failure of ours.
type endedError struct{ status syscall.WaitStatus }

func (e *endedError) Error() string {
	if e.status.Signaled() {
		return "the program died of " + wording.Signal(int(e.status.Signal()))
	}
	return fmt.Sprintf("the program ended with status %d", e.status.ExitStatus())
}

// repeat ends this process as the program ended. Shells and make distinguish an end by a signal
// from a status, and stop a loop at SIGINT. If the signal does not end the process, repeat returns
// the status that a shell would report.
func (e *endedError) repeat() int {
	if !e.status.Signaled() {
		return e.status.ExitStatus()
	}
	s := e.status.Signal()
	// Our own core must not take the place of the program's, which may have
	// the same name.
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) == nil && restoreDefault(s) == nil {
		unix.Kill(os.Getpid(), s)
		time.Sleep(time.Second) // another thread may take the signal that ends the process
	}
	return 128 + int(s)
}

// restoreDefault resets a signal that Go's runtime handles: the runtime would turn SIGABRT and
// SIGSEGV into a panic's output and status 2. The kernel's struct sigaction is handler, flags,
// restorer, mask; zeros are SIG_DFL.
func restoreDefault(s syscall.Signal) error {
	if s == unix.SIGKILL {
		return nil
	}
	var action [4]uint64
	_, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if err != 0 {
		return err
	}
	return nil
}

// leavesCore: signal(7) calls the action Core.
func leavesCore(s syscall.Signal) bool {
	return slices.Contains([]syscall.Signal{unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
		unix.SIGSEGV, unix.SIGSYS, unix.SIGXCPU, unix.SIGXFSZ}, s)
}
