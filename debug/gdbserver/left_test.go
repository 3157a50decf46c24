package gdbserver_test

import (
	"strings"
	"testing"

	"diagnose/debug/debugtest"
)

const leftSource = "left.c"

// toCheck goes to where the program is about to fail, repairs that, and sets what it does later.
func toCheck(set string, commands ...string) []string {
	return append([]string{"break check", "reverse-continue", "delete", "set var broken = 0", set, "monitor leave"}, commands...)
}

const (
	hasLeft  = `no longer follows the recording`
	backHere = `is given up: the program is again as recorded`
)

// The program takes another way, past the recorded failure: its threads run and stop, and it ends. After that the recording is as before.
func TestLeave(t *testing.T) {
	for _, c := range [][2]string{{"gcc", "-O0"}, {"clang", "-O2"}} {
		t.Run(c[0], func(t *testing.T) {
			out := gdb(t, leftSource, c[0], c[1], toCheck("print handled", "monitor when", "info threads",
				"break handle if n == 100", "continue", "bt", "set var $t = total", "print add(1) == $t + 1", "print total == $t + 1", "next", "info threads", "thread 1", "thread 3", "finish",
				"delete", "break at_end", "continue", "print total", "finish", "reverse-stepi", "reverse-continue", "monitor who-wrote 0x1000 4",
				"delete", "continue", "monitor when", "continue", "bt -3", "monitor discard", "continue", "bt 1", "print broken", "print handled", "info threads", "monitor when", "stepi", "continue", "print handled", "reverse-stepi", "continue")...)
			shows(t, out, `\$1 = 0`, hasLeft, `has left the recording at 1:\d+:0x`, `\* 1 .* check`, `Thread 3 .* hit Breakpoint 2, handle \(n=(n@entry=)?100\)`, `#1 .* work`,
				`\$2 = 1\n`, `\$3 = 1\n`, `\* 3 `, `5 .*Thread 5`, `main \(\)|dg_join`,
				`Thread 1 .* hit Breakpoint 3, at_end`, `= 1331\n`, `main \(\)`, `cannot go backwards: 'discard'`, `main \(\)`, `cannot go backwards`, "left the recording, in which",
				`does not continue: it ended the program, with the status 3\. 'discard'`, `has left the recording at 1:`, `does not continue`, `__libc_start_call_main`, "stays here", backHere,
				`check \(\)`, `= 1\n`, `= 0\n`, `Thread 3`, `\n1:\d+:0x`, "SIGSEGV", `= 0\n`, "SIGSEGV")
		})
	}
}

// A fault is reported as in a live program; without the signal the instruction is executed again. A fault with a handler stops gdb before that.
func TestLeftFaults(t *testing.T) {
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("set var wild = 1", "continue", "bt", "continue", "print add(1)", "signal 0", "info registers rip", "monitor discard", "continue", "print wild", "continue")...)
	shows(t, out, hasLeft, "received signal SIGSEGV", `#0 .* main`, "does not continue: SIGSEGV ends it", "= 1331", "received signal SIGSEGV", backHere, "= 0", "SIGSEGV")
	out = gdb(t, leftSource, "gcc", "-O0", toCheck("set var wild = 1", "set var catches = 1", "continue", "break on_fault", "break at_end", "continue", "bt", "print repaired", "continue", "print repaired")...)
	shows(t, out, "received signal SIGSEGV", `hit Breakpoint 2, on_fault \(number=11\)`, "signal handler called", `#2 .* main`, "= 0", "hit Breakpoint 3, at_end", "= 11")
	out = gdb(t, leftSource, "gcc", "-O0", toCheck("set var wild = 1", "set var catches = 1", "handle SIGSEGV nostop noprint pass", "break at_end", "continue", "print repaired")...)
	shows(t, out, "hit Breakpoint 2, at_end", "= 11")
	out = gdb(t, leftSource, "gcc", "-O0", toCheck("set var aborts = 1", "continue", "bt", "continue", "stepi")...)
	shows(t, out, "received signal SIGABRT", "#.*abort", "#.* main", "does not continue: SIGABRT ends it", "does not continue: SIGABRT ends it")
	// The agent's heap refuses to free it.
	out = gdb(t, leftSource, "gcc", "-O0", toCheck("set var frees = 8", "continue", "bt")...)
	shows(t, out, "received signal SIGABRT", "#.*abort", "#.* main")
}

// The process stays where it cannot continue.
func TestLeftEnds(t *testing.T) {
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("set var waits = 1", "continue", "bt", "next", "monitor discard", "continue", "print waits")...)
	shows(t, out, "does not continue: it waits for an input that the recording does not have", "#.* main", "does not continue", backHere, `check \(\)`, "= 0")
	out = gdb(t, leftSource, "gcc", "-O0", toCheck("set var locks = 1", "continue", "bt", "monitor goto end", "continue", "print locks", "bt 1")...)
	shows(t, out, `does not continue: (every thread waits for another|threads wait for each other's mutexes); thread 1 waits for mutex 0x`, "#.* main", backHere, "SIGSEGV", "= 0", "#0 .* check")
}

// Ctrl-C stops a loop without an end, in continue and in a step over its line.
func TestLeftInterrupted(t *testing.T) {
	interrupt := "python import threading, os, signal; threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()"
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("set var forever = 1", interrupt, "continue", "bt", interrupt, "next", "bt", "set var forever = 0", "break at_end", "continue")...)
	shows(t, out, "received signal SIGINT", `#0 .* main`, "received signal SIGINT", `#0 .* main`, "hit Breakpoint 2, at_end")
}

func TestLeftWatches(t *testing.T) {
	debugtest.NeedsWatches(t)
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("watch handled", "continue", "bt 1", "continue", "delete", "continue")...)
	shows(t, out, `Hardware watchpoint 2: handled`, "Old value = 0", "New value = 1", `#0 .*handle`, "Old value = 1", "New value = 2", "does not continue")
}

// Another thread than the one that stopped is stepped, and calls a function. It was in the program, not in the recording library, anywhere in its
// loop.
func TestLeftThreads(t *testing.T) {
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("print total", "thread 4", "bt 1", "print add(5)", "stepi", "bt 1", "next", "next", "info threads", "thread 1", "print add(0)", "next", "bt 2", "thread 4", "set var stopped = 1", "next", "next", "next", "info threads", "continue")...)
	shows(t, out, hasLeft, "Switching to thread 4", `#0 .* turn`, `= 5\n`, `(0x[0-9a-f]+\t)?4[012]\t`, `#0 .* turn`, `\* 4 `, "Switching to thread 1", `= 5\n`, `main \(\)`, "Switching to thread 4", `\n42\t`, `\* 4 `, "the status 3")
}

// A thread that waits in a loop for a store does not keep the thread from running that makes it.
func TestLeftTurns(t *testing.T) {
	out := gdb(t, leftSource, "gcc", "-O0", toCheck("print stopped", "thread 4", "print add(0)", "continue", "print stopped")...)
	shows(t, out, hasLeft, "Switching to thread 4", "= 0\n", "the status 3", "= 1\n")
}

// A store alone takes no thread out of the recording library: the signal at which the process leaves is delivered.
func TestLeaveAtSignal(t *testing.T) {
	out := gdb(t, "signals.c", "gcc", "-O0", "reverse-continue", "set var repaired = 7", "monitor leave", "break on_usr", "continue", "print repaired", "bt", "continue", "continue")
	shows(t, out, "received signal SIGUSR1", hasLeft, `Breakpoint 1, on_usr`, "= 7\n", "#[0-9]+ .* main", "received signal SIGSEGV", "SIGSEGV ends it")
}

// What was changed and called before lasts; a call that did not return does not.
func TestLeaveChanged(t *testing.T) {
	out := gdb(t, calledSource, "gcc", "-O0", "break place", "reverse-continue", "print lock_lent()", "monitor leave", "print count()", "print lock_lent()", `print escape("escaped")`, "finish", "print total",
		"monitor discard", "continue", "print total", "print lock_kept()", "monitor leave", "monitor discard", "continue", "continue", "print total", "bt")
	shows(t, out, "= 8", hasLeft, "= 9", "= 10", "= 8", "Run till exit|main", "= 10", backHere, "= 7", "every thread waits", "did not return, so", "stays here", "SIGSEGV", "= 1\n", "#0 .* fail")
	out = gdb(t, calledSource, "gcc", "-O0", "break place", "reverse-continue", "break count", "print count()", "monitor leave", "next", "print total", "delete", "continue")
	shows(t, out, "stopped while in a function called", hasLeft, "= 8", "SIGSEGV")
	out = gdb(t, "../../internal/testdata/record/checkpoint/wiped.c", "gcc", "-O0", "monitor leave", "monitor when", "continue")
	shows(t, out, "no checkpoint is possible here", `\n1:\d+:0x`, "No more reverse-execution history")
	if strings.Contains(out, "has left") {
		t.Errorf("a process that cannot be copied has left:\n%s", out)
	}
}
