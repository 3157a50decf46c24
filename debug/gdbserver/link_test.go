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

// gdb has the libraries that are loaded at each position, however it came there: the list is the server's, and gdb learns of changes on ways that
// do not lead through the dynamic linker's breakpoint.
func TestLibraries(t *testing.T) {
	loaded := "python print('loaded' if any('libloaded' in (o.filename or '') for o in gdb.objfiles()) else 'none')"
	moment := "python m = gdb.execute('monitor when', to_string=True).strip()"
	goThere := "python gdb.execute('monitor goto ' + m)"
	out := ask(t, locals(t), loaded, "break place", "reverse-continue", loaded, "reverse-continue", loaded, moment, "monitor goto end", "continue", loaded, goThere, "continue",
		loaded, "print in_loaded", "bt", "break loaded_at", "reverse-continue", "info symbol $pc", "reverse-continue", "info symbol $pc", loaded, "monitor goto begin", "continue", loaded, "delete",
		goThere, "stepi", "info symbol $pc", loaded, "continue", loaded, "maint packet qXfer:libraries-svr4:read::0,fff")
	shows(t, out, "SIGSEGV|main", "none", "hit Breakpoint 1", "none", "hit Breakpoint 1", "loaded", "SIGSEGV", "none", "stopped|Breakpoint 1", "loaded", `= 22`, "#0 .* place", "#1 .* main",
		"Breakpoint 2", "loaded_at", "Breakpoint 1", "place", "loaded", "stopped", "none", "place", "loaded", "SIGSEGV", "none", "main-lm=.*liblinked.*l_addr=.*l_ld=")
}

// gdb steps a thread over its breakpoint before it continues to where another thread runs, and where the first one may not exist.
func TestGotoPastABreakpoint(t *testing.T) {
	in := "python print('in thread %d' % gdb.selected_thread().ptid[1])"
	toSecond := "python [gdb.execute('reverse-continue') for _ in range(9) if gdb.selected_thread().ptid[1] != 2]"
	out := ask(t, locals(t), "break place", toSecond, in, "monitor goto begin", "continue", in, "continue", in, "monitor goto end", "continue", in)
	shows(t, out, "in thread 2", "leads there", "in thread 1", `hit Breakpoint 1`, "in thread 2", "leads there", "SIGSEGV", "in thread 1")
}
