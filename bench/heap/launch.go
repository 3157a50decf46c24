package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/load"
)

// timeout ends a run that hangs; valgrind's take longest.
const timeout = 3 * time.Minute

// sample is what one run cost.
type sample struct {
	wall, cpu float64 // seconds
	peak      float64 // bytes resident
	output    [sha256.Size]byte
}

// launcher starts programs by launcher/cost.c.
type launcher struct{ path string }

func newLauncher(dir string) (*launcher, error) {
	l := &launcher{filepath.Join(dir, "cost")}
	return l, load.Compile("gcc", "bench/heap/launcher/cost.c", l.path)
}

// job is one run of a program.
type job struct {
	argv []string
	env  []string // NAME=VALUE, for the program and not for its wrapper's parents
	dir  string
	// input is a file for standard input, if not empty.
	input string
	// serve, if set, is called while the program runs; then it is ended. What
	// it returns is the output, and the number of requests the cost is
	// divided by.
	serve func() (string, float64, error)
}

// launch executes a job under an allocator.
func (l *launcher) launch(j job, a allocator) (sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	argv := append([]string{}, j.env...)
	if a.preload != "" {
		argv = append(argv, "LD_PRELOAD="+a.preload)
	}
	argv = append(argv, "--")
	argv = append(append(argv, a.wrapper...), j.argv...)
	cmd := exec.CommandContext(ctx, l.path, argv...)
	cmd.Dir = j.dir
	cmd.Env = load.Environment(j.dir)
	// The group dies with a run that took too long, not only its leader.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if j.input != "" {
		in, err := os.Open(j.input)
		if err != nil {
			return sample{}, err
		}
		defer in.Close()
		cmd.Stdin = in
	}
	report, write, err := os.Pipe()
	if err != nil {
		return sample{}, err
	}
	defer report.Close()
	cmd.ExtraFiles = []*os.File{write}
	digest := sha256.New()
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = digest, &messages
	err = cmd.Start()
	write.Close()
	if err != nil {
		return sample{}, err
	}
	s, err := finish(j, bufio.NewReader(report), digest)
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	if ctx.Err() != nil {
		return sample{}, fmt.Errorf("did not end within %v", timeout)
	}
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, load.Tail(messages.String()))
	}
	if strings.Contains(messages.String(), "cannot be preloaded") {
		return sample{}, fmt.Errorf("not loaded: %s", load.Tail(messages.String()))
	}
	digest.Sum(s.output[:0])
	return s, nil
}

// finish reads the launcher's report.
func finish(j job, report *bufio.Reader, output io.Writer) (sample, error) {
	var pid, status int
	if _, err := fmt.Fscanf(report, "%d\n", &pid); err != nil {
		return sample{}, fmt.Errorf("launcher: %w", err)
	}
	requests, served := 1.0, time.Duration(0)
	if j.serve != nil {
		start := time.Now()
		text, n, err := j.serve()
		served = time.Since(start)
		// The server is gone already if it crashed.
		syscall.Kill(pid, syscall.SIGTERM)
		if err != nil {
			return sample{}, err
		}
		io.WriteString(output, text)
		requests = n
	}
	var wall, cpu, peak int64
	if _, err := fmt.Fscanf(report, "%d %d %d %d\n", &wall, &cpu, &peak, &status); err != nil {
		return sample{}, fmt.Errorf("launcher: %w", err)
	}
	// A server may die of the signal that ends it.
	if status != 0 && (j.serve == nil || status != 128+int(syscall.SIGTERM)) {
		return sample{}, fmt.Errorf("exit status %d", status)
	}
	if j.serve != nil {
		wall = served.Microseconds() // how soon a server ends is of no interest
	}
	const micro = 1e-6
	return sample{wall: float64(wall) * micro / requests, cpu: float64(cpu) * micro / requests, peak: float64(peak) * 1024}, nil
}
