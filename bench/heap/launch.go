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
	return l, compile("gcc", "bench/heap/launcher/cost.c", l.path)
}

// compile builds a program if it is older than its sources.
func compile(compiler, source, target string, flags ...string) error {
	newest, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("%w: run this in the root of the source tree", err)
	}
	sources := []os.FileInfo{newest}
	if header, err := os.Stat(filepath.Join(filepath.Dir(source), "bench.h")); err == nil {
		sources = append(sources, header)
	}
	if built, err := os.Stat(target); err == nil {
		fresh := true
		for _, s := range sources {
			fresh = fresh && built.ModTime().After(s.ModTime())
		}
		if fresh {
			return nil
		}
	}
	argv := append([]string{"-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", target, source}, flags...)
	if out, err := exec.Command(compiler, argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, source, err, out)
	}
	return nil
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

// run executes a job under an allocator.
func (l *launcher) run(j job, a allocator) (sample, error) {
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
	cmd.Env = environment(j.dir)
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
		return sample{}, fmt.Errorf("%w: %s", err, tail(messages.String()))
	}
	if strings.Contains(messages.String(), "cannot be preloaded") {
		return sample{}, fmt.Errorf("not loaded: %s", tail(messages.String()))
	}
	digest.Sum(s.output[:0])
	return s, nil
}

// searchPath finds the distribution's programs and no others.
const searchPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// environment is the same for everybody who runs this.
func environment(home string) []string {
	return []string{"PATH=" + searchPath, "LC_ALL=C", "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
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

// tail is the end of what a program said on standard error.
func tail(s string) string {
	const limit = 400
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = "... " + s[len(s)-limit:]
	}
	return s
}
