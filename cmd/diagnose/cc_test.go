package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compilerSays runs gcc itself, which `diagnose cc` must behave like.
func compilerSays(t *testing.T, args ...string) outcome {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	c := exec.Command("gcc", args...)
	var out, said strings.Builder
	c.Stdout, c.Stderr = &out, &said
	_ = c.Run() // its status is compared
	return outcome{stdout: out.String(), stderr: said.String(), status: c.ProcessState.ExitCode()}
}

// TestCompilerIsAsByItself compares output and exit status with the compiler's.
func TestCompilerIsAsByItself(t *testing.T) {
	dir := t.TempDir()
	good, bad, out := filepath.Join(dir, "good.c"), filepath.Join(dir, "bad.c"), filepath.Join(dir, "out")
	for file, text := range map[string]string{good: "int main(void) { int unused; return 0; }\n", bad: "int main(void) { return x; }\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"--version"}, {"-dumpmachine"}, {"-print-search-dirs"}, {"-v"},
		{"-Wall", "-c", good, "-o", out}, {"-Werror=unused-variable", "-c", good, "-o", out}, {"-c", bad, "-o", out},
		{"-M", good}, {"-fsyntax-only", good}, {"-nonsense", good}, {"-c", filepath.Join(dir, "missing.c")},
		{"-Wall", "-Wextra", good, "-o", out}, {"-o", out},
	} {
		want := compilerSays(t, args...)
		got := diagnose(t, nil, append([]string{"cc", "--compiler=gcc"}, args...)...)
		if got.status != want.status || got.stdout != want.stdout || got.stderr != want.stderr {
			t.Errorf("gcc %v:\n%+v\nby itself:\n%+v", args, got, want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	compilerSays(t, "--version") // skips the test if there is no compiler
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"cc"}, exitUsage, "nothing to compile"},
		{[]string{"cc", "--compiler"}, exitUsage, "--compiler takes a command"},
		{[]string{"c++", "--compiler", "", "a.cc"}, exitUsage, "--compiler takes a command"},
		{[]string{"cc", "--compiler", "gcc", "-fsanitize=address", "a.c"}, exitUsage, "-fsanitize=address: its runtime does not go with"},
		{[]string{"cc", "--compiler", "gcc", "-static", "a.c"}, exitUsage, "-static: a statically linked program cannot be recorded"},
		{[]string{"cc", "--compiler", "no-such-compiler", "a.c"}, exitInput, "no-such-compiler"},
		{[]string{"c++", "--compiler", "diagnose c++", "a.cc"}, exitInput, "diagnose"},
	} {
		got := diagnose(t, nil, c.args...)
		if got.status != c.status || !strings.Contains(got.stderr, c.want) || got.stdout != "" {
			t.Errorf("%v: %+v, want status %d and %q", c.args, got, c.status, c.want)
		}
	}
	if got := diagnose(t, nil, "c++", "--help"); got.status != exitOK || !strings.Contains(got.stdout, "./configure CC=\"diagnose cc\"") {
		t.Errorf("--help: %+v", got)
	}
}
