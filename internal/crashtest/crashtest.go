// Package crashtest compiles small programs at test time and crashes them for
// real, so that tests work on cores that the kernel wrote.
package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// corePattern is a variable for the tests of what a collector's machine does.
var corePattern = "/proc/sys/kernel/core_pattern"

// UnsupportedError says what this machine lacks. Tests skip on it, and only
// on it.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return "not supported here: " + e.What }

// Program is a source file and how to compile it.
type Program struct {
	// Source is a path, or Text the source itself with Source its name.
	Source, Text string
	// Compiler is "gcc", "g++", "clang", "rustc", ...; "" chooses gcc, g++ or
	// rustc by the source's ending.
	Compiler string
	Flags    []string
	// Output is the file's name; "" is the source's without its ending.
	Output string
}

// Compile compiles p into a directory of the test's own and returns the
// result's path.
func Compile(t testing.TB, p Program) string {
	t.Helper()
	dir := t.TempDir()
	source := p.Source
	if p.Text != "" {
		source = filepath.Join(dir, filepath.Base(p.Source))
		if err := os.WriteFile(source, []byte(p.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	compiler := p.Compiler
	if compiler == "" {
		compiler = compilerFor(source)
	}
	if _, err := exec.LookPath(compiler); err != nil {
		skipUnsupported(t, &UnsupportedError{compiler + " is not installed"})
	}
	name := p.Output
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
	}
	out := filepath.Join(dir, name)
	args := append([]string{"-g", source, "-o", out}, p.Flags...)
	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, text)
	}
	return out
}

func compilerFor(source string) string {
	switch filepath.Ext(source) {
	case ".cc", ".cpp":
		return "g++"
	case ".rs":
		return "rustc"
	}
	return "gcc"
}

// Run says how a program is run until it crashes.
type Run struct {
	Args, Env []string
	// Limit bounds the run; 0 is 30 s.
	Limit time.Duration
	// Hang says that the program deadlocks: it gets SIGABRT once all its
	// threads wait for a futex.
	Hang bool
}

// Core runs exe until it dies of a signal and returns the core's path. A
// program that does not crash fails the test.
func Core(t testing.TB, exe string, run Run) string {
	t.Helper()
	path, err := core(t.TempDir(), exe, run)
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		skipUnsupported(t, unsupported)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func core(dir, exe string, run Run) (string, error) {
	if run.Limit == 0 {
		run.Limit = 30 * time.Second
	}
	if kernelWritesCores() {
		return kernelCore(dir, exe, run)
	}
	return debuggerCore(dir, exe, run)
}

// NeedKernelCores skips a test that gdb's cores do not suit: gdb leaves out memory that was never
// written, marks every mapping as readable, and stops at the first signal, whether the program
// handles it or not.
func NeedKernelCores(t testing.TB) {
	t.Helper()
	if !kernelWritesCores() {
		skipUnsupported(t, &UnsupportedError{"the kernel hands cores to a collector (core_pattern), and gdb's do not serve"})
	}
}

// kernelWritesCores reports whether core_pattern names a file in the working
// directory (proc(5), core(5)) that kernelCore finds, not a pipe to a
// collector and not a fixed path, and the limit of its size may be lifted.
func kernelWritesCores() bool {
	pattern, err := os.ReadFile(corePattern)
	if err != nil || !strings.HasPrefix(string(pattern), "core") || strings.Contains(string(pattern), "/") {
		return false
	}
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_CORE, &limit) == nil {
		return true
	}
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) != nil || limit.Max == 0 {
		return false
	}
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_CORE, &limit) == nil
}

func kernelCore(dir, exe string, run Run) (string, error) {
	cmd := exec.Command(exe, run.Args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), run.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A child that outlives the program may keep the pipe open.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%s: %w", exe, err)
	}
	hung, ended := make(chan error, 1), make(chan struct{})
	if run.Hang {
		go func() { hung <- abortWhenHung(cmd.Process.Pid, run.Limit, ended) }()
	} else {
		hung <- nil
	}
	timer := time.AfterFunc(run.Limit, func() { cmd.Process.Signal(unix.SIGKILL) })
	err := cmd.Wait()
	close(ended)
	if !timer.Stop() {
		return "", fmt.Errorf("%s still ran after %v", exe, run.Limit)
	}
	if err := <-hung; err != nil {
		return "", fmt.Errorf("%s: %w\n%s", exe, err, out.Bytes())
	}
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(found) == 0 {
		return "", fmt.Errorf("%s left no core: %v\n%s", exe, err, out.Bytes())
	}
	return found[0], nil
}

// debuggerCore has gdb stop the program at the signal and write the core,
// where the kernel hands cores to a collector.
func debuggerCore(dir, exe string, run Run) (string, error) {
	if _, err := exec.LookPath("gdb"); err != nil {
		return "", &UnsupportedError{"cores go to a collector and gdb is not installed"}
	}
	if run.Hang {
		return "", &UnsupportedError{"cores go to a collector, and gdb cannot tell that a program hangs"}
	}
	path := filepath.Join(dir, "core")
	var out []byte
	var err error
	// gdb follows one process, and the child may be the one that crashes.
	for _, process := range []string{"parent", "child"} {
		args := []string{"-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set follow-fork-mode " + process}
		// The libraries that the program preloads must not enter gdb or a shell.
		args = append(args, "-ex", "set startup-with-shell off")
		for _, entry := range run.Env {
			args = append(args, "-ex", "set environment "+entry)
		}
		args = append(args, "-ex", "run", "-ex", "generate-core-file "+path, "--args", exe)
		cmd := exec.Command("gdb", append(args, run.Args...)...)
		cmd.Dir = dir
		out, err = cmd.CombinedOutput()
		if _, statErr := os.Stat(path); statErr == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("gdb wrote no core of %s: %v\n%s", exe, err, out)
}

func skipUnsupported(t testing.TB, err *UnsupportedError) {
	t.Helper()
	t.Skip(err.Error())
}
