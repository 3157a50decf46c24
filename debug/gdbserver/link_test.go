package gdbserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"diagnose/debug/debugtest"
)

// locals serves a recording of locals.c and its two libraries.
func locals(t *testing.T) *debugtest.Served {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	const source = "../testdata/locals.c"
	debugtest.Compile(t, "gcc", "-g", "-shared", "-fPIC", "-DLINKED", "-o", in("liblinked.so"), source)
	debugtest.Compile(t, "gcc", "-g", "-shared", "-fPIC", "-DLOADED", "-o", in("libloaded.so"), source)
	debugtest.Compile(t, "gcc", "-g", "-O0", "-pthread", "-o", in("program"), source, in("liblinked.so"), "-ldl")
	return debugtest.ServeProgram(t, in("program"), in("libloaded.so"))
}

// gdb prints thread-local variables of the program, of the C library, of a library that is linked and of one that is loaded, in each
// thread. Where a thread has no block of the library yet, the user is told so.
func TestThreadLocals(t *testing.T) {
	served := locals(t)
	out := ask(t, served, "break place", "reverse-continue", "reverse-continue", "print own", "print errno", "print at_start", "print in_loaded",
		"thread 2", "print own", "print errno", "print at_start", "print in_loaded", "thread 1", "reverse-continue", "print in_loaded", "continue", "print in_loaded",
		"set var in_loaded = 23", "print *loaded_at()", "print in_loaded", "reverse-stepi", "print in_loaded")
	shows(t, out, `\$1 = 3`, `\$2 = 9`, `\$3 = 11`, `\$4 = 22`, `\$5 = 2`, `\$6 = 7`, `\$7 = 12`, "Cannot find thread-local storage for Thread 2",
		"Cannot find thread-local storage for Thread 1", `\$8 = 22`, `\$9 = 23`, `\$10 = 23`, givenUp, `\$11 = 22`)
	for _, reason := range []string{"libloaded.so in thread 2: not allocated", "libloaded.so in thread 1: not allocated"} {
		if !strings.Contains(served.Notes.String(), reason) {
			t.Errorf("the user is not told %q: %q", reason, served.Notes.String())
		}
	}
}
