package object

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// testProgram has everything that the tests need: imports that are called or
// whose address is taken, thread-local data, zeroed and filled data, and enough
// strings for its debug sections to be worth compressing.
const testProgram = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__thread int local_to_thread = 7;
int filled[64] = {1, 2, 3};
int zeroed[64];
static int hidden_helper(int n) { return n * 3 + filled[n & 63]; }
__attribute__((noinline)) int middle(int n) { return hidden_helper(n) + (int)write(1, "", 0); }
int (*taken)(const char *) = puts;
int main(int argc, char **argv) {
	char *p = malloc(10);
	memset(zeroed, argc, sizeof zeroed);
	printf("%d %d %s\n", middle(argc), local_to_thread, argv[0]);
	free(p);
	return taken("end") == 0 && getpid() == 0;
}
`

// build compiles the program with flags added.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	return crashtest.Compile(t, crashtest.Program{Source: "program.c", Text: testProgram, Flags: flags})
}

// tool runs a program of the toolchain and returns what it prints. The test is
// skipped if it is not installed.
func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(&crashtest.UnsupportedError{What: name + " is not installed"})
	}
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// copyFile copies a file and returns the copy's path.
func copyFile(t testing.TB, from, to string) string {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, b)
	return to
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
}

// systemLibc returns the path of the libc that the programs here run with.
func systemLibc(t testing.TB) string {
	t.Helper()
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip(&crashtest.UnsupportedError{What: "no libc.so.6 in the usual places"})
	return ""
}
