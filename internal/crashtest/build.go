package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// BuildOptions says how a fixture is compiled.
type BuildOptions struct {
	Variant Variant
	// Fixed compiles the twin without the bug.
	Fixed bool
}

// Crash is a fixture that was compiled, run and killed by its bug.
type Crash struct {
	Fixture *Fixture
	Variant Variant
	// Exe and Core are paths that live as long as the test that asked first.
	Exe, Core string
}

type buildKey struct {
	source, variant string
	fixed           bool
}

type built struct {
	once sync.Once
	exe  string
	err  error
}

// builds holds what this process compiled; slots bounds the compilers that
// run at once.
var (
	buildsMutex sync.Mutex
	builds      = map[buildKey]*built{}
	buildsDir   string
	slots       = make(chan struct{}, 2)
)

// Main runs the tests of a package that uses Build or Crash and removes the
// compiled fixtures after them. Call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	buildsMutex.Lock()
	defer buildsMutex.Unlock()
	if buildsDir != "" {
		os.RemoveAll(buildsDir)
	}
	os.Exit(code)
}

// Build compiles the fixture and returns the executable's path. The same
// build is made once for a test binary's run; TestMain has to call Main to
// have it removed. A compiler that is not installed skips the test.
func (f *Fixture) Build(t testing.TB, o BuildOptions) string {
	t.Helper()
	exe, err := f.build(o)
	fatalOrSkip(t, err)
	return exe
}

// Crash compiles the fixture, runs it and returns the core it left, which the
// test's end removes.
func (f *Fixture) Crash(t testing.TB, v Variant) Crash {
	t.Helper()
	if f.kernel {
		NeedKernelCores(t)
	}
	exe := f.Build(t, BuildOptions{Variant: v})
	run := Run{Args: f.Arguments(exe), Hang: f.Hang}
	return Crash{Fixture: f, Variant: v, Exe: exe, Core: Core(t, exe, run)}
}

// Passes runs the fixed twin and fails the test if it does not exit with
// status 0.
func (f *Fixture) Passes(t testing.TB, v Variant) {
	t.Helper()
	exe := f.Build(t, BuildOptions{Variant: v, Fixed: true})
	cmd := exec.Command(exe, f.Arguments(exe)...)
	cmd.Dir = t.TempDir()
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the fixed twin of %s: %v\n%s", f.Name, err, out)
	}
}

// Arguments are those of a run of the executable.
func (f *Fixture) Arguments(exe string) []string {
	args := make([]string, len(f.args))
	for i, a := range f.args {
		args[i] = strings.ReplaceAll(a, "{dir}", filepath.Dir(exe))
	}
	return args
}

func (f *Fixture) build(o BuildOptions) (string, error) {
	key := buildKey{f.Source, o.Variant.Name, o.Fixed}
	buildsMutex.Lock()
	b := builds[key]
	if b == nil {
		b = &built{}
		builds[key] = b
	}
	buildsMutex.Unlock()
	b.once.Do(func() {
		slots <- struct{}{}
		defer func() { <-slots }()
		b.exe, b.err = f.compile(o)
	})
	return b.exe, b.err
}

func (f *Fixture) compile(o BuildOptions) (string, error) {
	dir, err := buildDir(f.Name + "-" + o.Variant.Name)
	if err != nil {
		return "", err
	}
	var args []string
	for _, lib := range []string{f.library, f.plugin} {
		if lib == "" {
			continue
		}
		if err := f.compileLibrary(dir, lib, lib == f.library); err != nil {
			return "", err
		}
	}
	exe := filepath.Join(dir, f.Name)
	args = append(args, "-g", f.Source, "-o", exe)
	args = append(append(args, o.Variant.Flags...), f.flags...)
	if f.Language() == "rust" {
		args = append(args, "-A", "warnings")
		if o.Fixed {
			args = append(args, "--cfg", "fixed")
		}
		return exe, runTool(dir, "rustc", args...)
	}
	args = append(args, "-pipe", "-w")
	if o.Fixed {
		args = append(args, "-DFIXED")
	}
	if f.library != "" {
		args = append(args, "-L"+dir, "-l"+stem(f.library), "-Wl,-rpath,"+dir)
	}
	return exe, runTool(dir, f.compiler(o.Variant), args...)
}

func (f *Fixture) compiler(v Variant) string {
	cxx := f.Language() == "c++"
	switch {
	case v.Compiler == "clang" && cxx:
		return "clang++"
	case v.Compiler != "":
		return v.Compiler
	case cxx:
		return "g++"
	}
	return "gcc"
}

// compileLibrary makes lib<stem>.so of a source in the lib folder.
func (f *Fixture) compileLibrary(dir, source string, strip bool) error {
	args := []string{"-shared", "-fPIC", "-O2", "-pipe", "-w", "-o", filepath.Join(dir, "lib"+stem(source)+".so"),
		filepath.Join(filepath.Dir(f.Source), "lib", source)}
	if strip {
		args = append(args, "-s")
	} else {
		args = append(args, "-g")
	}
	return runTool(dir, "gcc", args...)
}

func stem(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) }

// buildDir makes a directory for one build below the process's own.
func buildDir(name string) (string, error) {
	buildsMutex.Lock()
	defer buildsMutex.Unlock()
	if buildsDir == "" {
		dir, err := os.MkdirTemp("", "crashtest-")
		if err != nil {
			return "", err
		}
		buildsDir = dir
	}
	return os.MkdirTemp(buildsDir, name+"-")
}

func runTool(dir, tool string, args ...string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return &UnsupportedError{tool + " is not installed"}
	}
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", tool, strings.Join(args, " "), err, text)
	}
	return nil
}

func fatalOrSkip(t testing.TB, err error) {
	t.Helper()
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		skipUnsupported(t, unsupported)
	case err != nil:
		t.Fatal(err)
	}
}
