package crashtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// CrashUnder is Crash with more in the program's environment: an agent.
func (f *Fixture) CrashUnder(t testing.TB, v Variant, env []string) Crash {
	t.Helper()
	if f.kernel {
		NeedKernelCores(t)
	}
	exe := f.Build(t, BuildOptions{Variant: v})
	return Crash{Fixture: f, Variant: v, Exe: exe, Core: Core(t, exe, Run{Args: f.Arguments(exe), Env: env})}
}

// EndCore runs the program under the end library, which env has to preload,
// and returns the core of its end.
func (f *Fixture) EndCore(t testing.TB, o BuildOptions, env []string) Crash {
	t.Helper()
	if f.kernel {
		NeedKernelCores(t)
	}
	exe := f.Build(t, o)
	run := Run{Args: f.Arguments(exe), Env: append([]string{"CORE_AT_END=1"}, env...)}
	return Crash{Fixture: f, Variant: o.Variant, Exe: exe, Core: Core(t, exe, run)}
}

// Exit is the end of a run that was not meant to crash.
type Exit struct {
	Stdout, Stderr string
	// Err is nil for status 0.
	Err error
}

// ExitUnder compiles the fixture, runs it to its end and tells how that was.
func (f *Fixture) ExitUnder(t testing.TB, o BuildOptions, env []string) Exit {
	t.Helper()
	exe := f.Build(t, o)
	cmd := exec.Command(exe, f.Arguments(exe)...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Run()
	return Exit{stdout.String(), stderr.String(), err}
}

// EndServed is the text that the end library writes to the standard output, at the end of a program
// that the agent served.
const EndServed = "served by the agent\n"

var endLibrary = sync.OnceValues(func() (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	dir, err := buildDir("end")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "libend.so")
	err = runTool(dir, "gcc", "-shared", "-fPIC", "-g", "-O2", "-I"+filepath.Join(root, "agent", "src"),
		"-o", out, filepath.Join(root, "internal", "testdata", "heap", "lib", "end.c"))
	if err != nil {
		return "", fmt.Errorf("the end library: %w", err)
	}
	return out, nil
})

// EndLibrary returns the path of a library to preload after the agent: it writes EndServed if the
// agent served the program, and ends the program with status 99 if not.
func EndLibrary(t testing.TB) string {
	t.Helper()
	path, err := endLibrary()
	fatalOrSkip(t, err)
	return path
}
