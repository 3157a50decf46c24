package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Command is a program and what it may use.
type Command struct {
	Path string
	Args []string
	// Stdin is the path of the standard input; empty: there is none.
	Stdin string
	// Dir is the directory that the program runs in.
	Dir string
	// Env is added to a small environment that is the same for all runs.
	Env []string
	// Time is how long it may run. Processor bounds its time on the processor, which a busy
	// machine does not change, in whole seconds; 0: no bound.
	Time      time.Duration
	Processor time.Duration
	// Asleep ends it when all its threads have slept for this long; 0: they may.
	Asleep time.Duration
	// Interrupt asks it to end, by SIGINT, when the time is up. If it does not, it is killed
	// after ten seconds.
	Interrupt bool
	// Memory bounds its data in MiB; 0: no bound, which sanitizers need.
	Memory int
}

// Result is how a run ended.
type Result struct {
	// Status is the exit status; Signal is not 0 where a signal ended the program, and
	// TimedOut says that it was ours.
	Status   int
	Signal   syscall.Signal
	TimedOut bool
	// Asleep says that it was ended because all threads slept.
	Asleep bool
	// Stdout and Stderr are the first part of the output; Cut says that there was more.
	Stdout, Stderr []byte
	Cut            bool
	// Used is its time on the processor.
	Used time.Duration
}

// maximum is how much of each stream is kept.
const maximum = 4 << 20

// Run runs a command. The error is of the run itself, not of the program.
func Run(ctx context.Context, c Command) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", c.script(), c.Path}, c.Args...)...)
	cmd.Dir = c.Dir
	cmd.Env = append(environment(c.Dir), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if c.Interrupt {
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
		cmd.WaitDelay = 10 * time.Second
	}
	if c.Stdin != "" {
		in, err := os.Open(c.Stdin)
		if err != nil {
			return nil, fmt.Errorf("limit: %w", err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	var out, messages bounded
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Start()
	var asleep bool
	if err == nil {
		watch := watcher{pid: cmd.Process.Pid, limit: c.Asleep, done: make(chan struct{})}
		watch.start()
		err = cmd.Wait()
		asleep = watch.stop()
	}
	r := &Result{Asleep: asleep, Stdout: out.kept.Bytes(), Stderr: messages.kept.Bytes(), Cut: out.cut || messages.cut, TimedOut: ctx.Err() != nil}
	if cmd.ProcessState == nil {
		return nil, fmt.Errorf("limit: %s: %w", c.Path, err)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // children that outlive it; there may be none
	r.Used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	wait := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if wait.Signaled() {
		r.Signal = wait.Signal()
		r.TimedOut = r.TimedOut || r.Signal == syscall.SIGXCPU
	} else {
		r.Status = wait.ExitStatus()
	}
	return r, nil
}

// script sets the limits and becomes the program.
func (c *Command) script() string {
	var b strings.Builder
	b.WriteString("ulimit -c unlimited 2>/dev/null; ")
	if c.Processor > 0 {
		// At the hard limit the signal is SIGKILL, which others send too.
		fmt.Fprintf(&b, "ulimit -S -t %d; ", int(c.Processor.Seconds()))
	}
	if c.Memory > 0 {
		fmt.Fprintf(&b, "ulimit -d %d; ", c.Memory<<10)
	}
	b.WriteString(`exec "$0" "$@"`)
	return b.String()
}

func environment(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C", "TZ=UTC"}
}

// bounded keeps the beginning of a stream.
type bounded struct {
	kept bytes.Buffer
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := maximum - b.kept.Len(); room < len(p) {
		b.cut = true
		b.kept.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.kept.Write(p)
}

// Core is the core file that a run left in its directory; empty: there is none.
func Core(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "core*"))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// Empty makes an empty directory of a name.
func Empty(dir string) error {
	if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("limit: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	return nil
}

// Files is the text of all files that a pattern finds.
func Files(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("limit: %w", err)
	}
	var b strings.Builder
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("limit: %w", err)
		}
		b.Write(text)
	}
	return b.String(), nil
}
