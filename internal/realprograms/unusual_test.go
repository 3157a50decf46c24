package realprograms

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// build compiles a program of testdata.
func build(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		need(t, compiler)
	}
	out := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-g", "-O1", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, text)
	}
	return out
}

// TestUnusualPrograms runs small programs that live as few do, but whose
// crashes the agent is for all the same.
func TestUnusualPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source string
		flags        []string
		// script runs $PROGRAM; "" runs it once.
		script string
		env    []string
	}{
		{name: "seccomp", source: "seccomp.c", env: noWitness},
		{name: "seccomp-late", source: "seccomp.c", flags: []string{"-DLATE"}, env: noWitness},
		{name: "seccomp-threads", source: "seccomp.c", flags: []string{"-DTHREADS"}, env: noWitness},
		{name: "address-space-limit", source: "rlimit.c", script: `$PROGRAM 300; $PROGRAM 100; (ulimit -v 300000; exec $PROGRAM); (ulimit -v 60000; exec $PROGRAM)`},
		{name: "stack-limits", source: "stacks.c", flags: []string{"-pthread"}, script: `
$PROGRAM; (ulimit -s unlimited; exec $PROGRAM); (ulimit -s 256; exec $PROGRAM); setarch -R $PROGRAM; setarch -L $PROGRAM; (ulimit -s unlimited; exec setarch -R $PROGRAM)`},
		{name: "faults", source: "faults.c"},
		{name: "signals", source: "faults.c", flags: []string{"-DTICKS"}},
		{name: "processes", source: "processes.c", flags: []string{"-pthread"}},
		{name: "own-malloc", source: "own_malloc.c", env: noWitness},
		{name: "cplusplus", source: "cplusplus.cc", flags: []string{"-std=c++17", "-pthread", "-fno-builtin"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compiler := "gcc"
			if filepath.Ext(c.source) == ".cc" {
				compiler = "g++"
			}
			script := c.script
			if script == "" {
				script = "$PROGRAM"
			}
			program := build(t, compiler, c.source, c.flags...)
			work{
				name: c.name, uses: []string{"program"}, script: script,
				env: append([]string{"PROGRAM=" + program}, c.env...),
			}.compareSettings(t)
		})
	}
}

// noWitness is for programs that may not or need not write at their end.
var noWitness = []string{"WITNESS_EXIT=no"}

func TestPlugins(t *testing.T) {
	t.Parallel()
	plugin := build(t, "g++", "plugin.cc", "-std=c++17", "-shared", "-fPIC", "-fno-gnu-unique")
	program := build(t, "g++", "plugins.cc", "-std=c++17", "-pthread")
	work{
		name: "plugins", uses: []string{"program"}, script: "$PROGRAM $PLUGIN",
		env: []string{"PROGRAM=" + program, "PLUGIN=" + plugin},
	}.compareSettings(t)
}

// TestGo runs a program whose C part uses the heap from Go's threads, with
// Go's own handlers of SIGSEGV and its stacks.
func TestGo(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", program, "./testdata/cgo")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	work{name: "go", uses: []string{"program"}, script: "$PROGRAM", env: []string{"PROGRAM=" + program, "WITNESS_EXIT=no"}}.compareSettings(t)
}

func TestRust(t *testing.T) {
	t.Parallel()
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		need(t, "rustc")
	}
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(rustc, "-O", "-o", program, "testdata/work.rs").CombinedOutput(); err != nil {
		t.Fatalf("rustc: %v\n%s", err, out)
	}
	work{name: "rust", uses: []string{"program"}, script: `$PROGRAM`, env: []string{"PROGRAM=" + program}}.compareSettings(t)
}
