package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/internal/crashtest"
)

// schemaOf compiles the checked-in schema.
func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../reports/schema/case-2.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate runs crash and checks its document against the schema.
func validate(t *testing.T, schema *jsonschema.Schema, args ...string) string {
	t.Helper()
	o := diagnose(t, nil, append([]string{"crash", "--format", "json"}, args...)...)
	if o.status != exitOK {
		t.Fatalf("status %d: %s", o.status, o.stderr)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(o.stdout))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	return o.stdout
}

// TestDocumentsOfCores validates reports of every sort of failure.
func TestDocumentsOfCores(t *testing.T) {
	schema := schemaOf(t)
	for _, name := range []string{"null_read", "assert", "cxx_throw_runtime", "rust_index", "stack_overflow", "stack_smashing",
		"deadlock_cycle", "signal_altstack", "threads_work", "values", "no_cfi", "execute_data", "dlopen_plugin"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := crashtest.Named(t, name)
			core := f.Crash(t, f.AllVariants()[0]).Core
			validate(t, schema, "--core", core)
			validate(t, schema, "--core", core, "--all-threads", "--show-secrets", "--depth", "2")
		})
	}
}

// TestDocumentsOfCutCores validates the reports of ever shorter parts of a core.
func TestDocumentsOfCutCores(t *testing.T) {
	schema := schemaOf(t)
	core, err := os.ReadFile(crashed(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "core")
	for _, part := range []int{100, 50, 25, 10, 5} {
		if err := os.WriteFile(path, core[:len(core)*part/100], 0o600); err != nil {
			t.Fatal(err)
		}
		if text := validate(t, schema, "--core", path); part < 100 && !strings.Contains(text, "truncated") {
			t.Errorf("%d %%: the document does not tell of the cut", part)
		}
	}
}

// compileGo compiles a Go program and returns the executable.
func compileGo(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "crasher.go"), filepath.Join(dir, "crasher")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", exe, source)
	build.Dir, build.Env = dir, append(os.Environ(), "GO111MODULE=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

func TestDocumentOfGo(t *testing.T) {
	exe := compileGo(t, "package main\nvar m map[string]int\nfunc main() { go func() { select {} }(); m[\"a\"] = 1 }\n")
	core := crashtest.Core(t, exe, crashtest.Run{Env: []string{"GOTRACEBACK=crash"}})
	if text := validate(t, schemaOf(t), "--core", core); !strings.Contains(text, `"go-panic"`) || !strings.Contains(text, `"goroutines"`) {
		t.Errorf("no panic and no goroutines in %s", text)
	}
}

func TestDocumentOfLiveProcess(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "waits.c", Text: `
#include <stdio.h>
int main(void) { puts("here"); fflush(stdout); return getchar(); }
`})
	cmd := exec.Command(exe)
	startWaiting(t, cmd)
	pid := strconv.Itoa(cmd.Process.Pid)
	if o := diagnose(t, nil, "crash", "--pid", pid); o.status == exitInput && strings.Contains(o.stderr, "may not be traced") {
		t.Skip("not supported here: ", o.stderr)
	}
	if text := validate(t, schemaOf(t), "--pid", pid); !strings.Contains(text, `"source": "live"`) {
		t.Errorf("not of a live process: %s", text)
	}
}

// startWaiting starts a program that prints a line and then waits for the end of its input, which
// is closed when the test ends.
func startWaiting(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}
